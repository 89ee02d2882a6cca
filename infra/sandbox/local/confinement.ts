import type { Account, Command, SandboxDescription } from '../sandbox.ts';
import type { SandboxDirectory } from './layout.ts';

export interface ConfinedCommand {
  readonly sandbox: SandboxDirectory;
  readonly account: Account;
  readonly argv: Command['argv'];
  readonly cwd: string;
  /** `NAME=value` entries that may only be set after the drop to the account's uid. */
  readonly innerEnv: readonly string[];
  /** Foreground commands die with their caller; detached ones must not. */
  readonly detached: boolean;
}

/**
 * A way to confine a local command. Each kind that a host may offer is a sibling file, registered in choose-confinement.ts.
 *
 * Contract:
 * - The command runs in its own pid, mount, network, ipc and uts namespace, and all of it ends with its init.
 * - It sees `/workspace`, `/tests` and the other directories of its sandbox under these names.
 * - On file descriptor 5 it reports, as lines of JSON, the host's pid of that init (`child-pid`, with `pid-namespace` or
 *   `start-tick`) and that the command was reached (`ready`, or `exit-code` at its end). Without the latter the set-up failed,
 *   which is the host's fault.
 */
export interface Confinement {
  readonly name: string;
  commandLine(command: ConfinedCommand): readonly string[];
  readonly describe: Pick<SandboxDescription, 'summary' | 'protects' | 'doesNotProtect'>;
}
