import type { NetworkUse } from '../../../workflows/contracts/network.ts';
import type { Verdict } from '../../../workflows/contracts/verdict.ts';
import type { Account, ChannelKind, Sandbox, SandboxMount } from '../../sandbox/sandbox.ts';

/** The network of the tests of one evaluation. */
export interface TestNetwork {
  /** Directories that the tests' sandbox must have for it. */
  readonly mounts: readonly SandboxMount[];
  /** The way of the connections out of the sandbox. */
  readonly channel: ChannelKind;
  readonly commands: NetworkedCommands;
  /** Carries the connections of an account's tests until it is closed. */
  carry(sandbox: Sandbox, account: Account): void;
  /** Ends all connections. */
  close(): void;
  /** Ends all connections, and returns the use that the tests made of them. */
  end(): Promise<NetworkUse>;
  /** Removes what the host keeps for it, once the sandbox is gone. */
  remove(): Promise<void>;
}

/** The way in which a command gets a network. */
export interface NetworkedCommands {
  readonly env: Readonly<Record<string, string>>;
  /** Returns the command that runs another one with the network. */
  through(argv: readonly [string, ...string[]]): readonly [string, ...string[]];
}

/** Commands without a network. */
export const offline: NetworkedCommands = { env: {}, through: (argv) => argv };

/** Returns a judgement with the use that its tests made of their network. */
export const withNetwork = <Judgement extends { readonly verdict: Verdict }>(
  judged: Judgement,
  network: NetworkUse | undefined,
): Judgement => (network === undefined ? judged : { ...judged, verdict: { ...judged.verdict, network } });
