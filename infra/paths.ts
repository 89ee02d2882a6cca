import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Files and directories of a stack, all below its home, except that sockets may need a shorter path. */
export interface Paths {
  readonly stackFile: string;
  readonly stackKey: string;
  /** File with the random id by which the store tells this machine's home from others. */
  readonly machine: string;
  /** File with the lease by which the processes of this host may act. */
  readonly lease: string;
  /** Lock that the host worker of this home holds for as long as it runs. */
  readonly hostLock: string;
  readonly database: string;
  readonly logs: string;
  readonly store: string;
  readonly journals: string;
  readonly gatewaySockets: {
    /** Directory with a directory of sockets for each session, which is mounted into the session's sandbox. */
    readonly sessions: string;
    /** Directory of the sockets that serve every session. */
    readonly agents: string;
    /** Directory of the control sockets; only this user may enter it. */
    readonly control: string;
  };
  /** Directory of the sockets and records of sandboxes with a network. */
  readonly egress: string;
  readonly sandboxes: string;
  /** Directory of the results of agents whose sandboxes are gone while their rollouts still run. */
  readonly results: string;
  /** Directory that records which images temper pulled or built on this host, and when each was last used. */
  readonly images: string;
  readonly policy: string;
  readonly trainer: string;
  readonly runs: string;
  readonly verdicts: string;
  /** Directory of the host workers' notes for `temper status`. */
  readonly hosts: string;
  /** Directory of the tasks whose tests are flaky. */
  readonly quarantine: string;
  /** Directory that records which packed task sets users hold the addresses of. */
  readonly packs: string;
  /** Directory of what closed workflows refer to, by the day of their end. */
  readonly outcomes: string;
  readonly lock: string;
  /** Lock that each command holds while it uses a stack that another process started. */
  readonly upUsers: string;
  /** File with the processes, pids and addresses of the stack that runs on this home. */
  readonly up: string;
}

export function pathsBelow(home: string): Paths {
  return {
    stackFile: join(home, 'stack.json'),
    stackKey: join(home, 'stack.key'),
    machine: join(home, 'machine.json'),
    lease: join(home, 'lease.json'),
    hostLock: join(home, 'host.lock'),
    database: join(home, 'temporal/temporal.db'),
    logs: join(home, 'logs'),
    store: join(home, 'store'),
    journals: join(home, 'gateway/journals'),
    gatewaySockets: {
      sessions: join(socketRoot(home), 'sessions'),
      agents: join(socketRoot(home), 'agents'),
      control: join(socketRoot(home), 'control'),
    },
    egress: join(socketRoot(home), 'egress'),
    sandboxes: join(home, 'sandboxes'),
    results: join(home, 'results'),
    images: join(home, 'images'),
    policy: join(home, 'policy'),
    trainer: join(home, 'trainer'),
    runs: join(home, 'runs'),
    verdicts: join(home, 'verdicts'),
    hosts: join(home, 'hosts'),
    quarantine: join(home, 'quarantine'),
    packs: join(home, 'packs'),
    outcomes: join(home, 'outcomes'),
    lock: join(home, 'up.lock'),
    upUsers: join(home, 'up.users'),
    up: join(home, 'up.json'),
  };
}

/** Parent directory of the sockets: the home, unless its path is too long for a socket address (108 bytes). */
function socketRoot(home: string): string {
  let hash = 0;
  for (const unit of home) hash = (Math.imul(hash, 31) + (unit.codePointAt(0) ?? 0)) >>> 0;
  return home.length <= 60 ? join(home, 's') : join(tmpdir(), `temper-${hash.toString(36)}`);
}
