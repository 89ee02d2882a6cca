/**
 * How a local command is shut in: one sibling per means that a host may offer, registered in confinements.ts.
 *
 * Contract:
 * - The command is in a pid, mount, network, ipc and uts namespace of its own; with its init, all of it ends.
 * - It sees `/workspace`, `/tests` and the like under these very names.
 * - On file descriptor 5 it reports, as lines of JSON, the host's pid of that init (`child-pid`, and with it `pid-namespace` or
 *   `start-tick`), and that the command was reached (`ready`, or `exit-code` at its end): else the set-up failed, which is the host's matter.
 */
import type { Account, Command, SandboxDescription } from '../sandbox.ts';
import type { LocalPlace } from './layout.ts';

export interface ConfinedCommand {
  readonly place: LocalPlace;
  readonly account: Account;
  readonly argv: Command['argv'];
  readonly cwd: string;
  /** `NAME=value` that may only be set after the drop to the account's uid. */
  readonly innerEnv: readonly string[];
  /** Foreground commands die with their caller; detached ones must not. */
  readonly detached: boolean;
}

export interface Confinement {
  readonly name: string;
  commandLine(command: ConfinedCommand): readonly string[];
  readonly describe: Pick<SandboxDescription, 'summary' | 'protects' | 'doesNotProtect'>;
}
