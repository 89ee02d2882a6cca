import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileRefused } from '../failure.ts';
import type { Account, SandboxSpec } from '../sandbox.ts';
import { type Accounts, ownerOf, runsAsRoot } from './accounts.ts';
import type { ControlGroup } from './control-group.ts';

/** The record of a local sandbox, written when it is created. */
export interface SandboxRecord {
  readonly spec: SandboxSpec;
  readonly accounts: Accounts;
  readonly group?: ControlGroup;
  readonly createdAtMs: number;
}

/**
 * A local sandbox's directory on the host, with its record.
 *
 *   DIR/meta.json   spec, uids, creation time            DIR/fs/...      the sandbox's files, under the same names
 *   DIR/etc/        passwd and group shown inside        DIR/ctl/KEY/    claim, pid, log and exit of each process
 *   DIR/run/        pids of foreground commands          DIR/root/       mount point of a confinement that needs one
 *
 * DIR and DIR/ctl belong to the caller and never appear inside.
 */
export interface SandboxDirectory extends SandboxRecord {
  readonly path: string;
}

export const treeOf = ({ path }: SandboxDirectory): string => join(path, 'fs');
export const controlOf = ({ path }: SandboxDirectory): string => join(path, 'ctl');
/** The directory of the pids of foreground commands while they run. */
export const executionsOf = ({ path }: SandboxDirectory): string => join(path, 'run');
export const etcOf = ({ path }: SandboxDirectory): string => join(path, 'etc');

/** Top-level names that come from the host, read-only, or are created for each command. */
const systemNames = new Set('bin boot dev etc gw lib lib32 lib64 libx32 proc run sbin sys usr var'.split(' '));

interface CreatedDirectory {
  readonly path: string;
  readonly owner: Account | 'host';
  readonly mode: number;
}

const skeleton = (workdir: string): readonly CreatedDirectory[] => [
  { path: workdir.slice(1), owner: 'agent', mode: 0o755 },
  { path: 'tests', owner: 'grader', mode: 0o700 },
  { path: 'logs', owner: 'host', mode: 0o755 },
  { path: 'logs/verifier', owner: 'grader', mode: 0o700 },
  { path: 'logs/agent', owner: 'agent', mode: 0o755 },
  { path: 'root', owner: 'grader', mode: 0o700 },
  { path: 'home', owner: 'host', mode: 0o755 },
  { path: 'home/agent', owner: 'agent', mode: 0o755 },
  { path: 'tmp', owner: 'host', mode: 0o1777 },
];

/** Top-level directories that are not mounted for the agent's commands, since a second uid does not always protect them. */
const hiddenFromAgent = new Set(['tests', 'root', 'logs']);
const shownToAgent = ['logs/agent'];

/** Creates the directories of a new sandbox below `directory`. */
export function createLayout(directory: string, record: SandboxRecord): void {
  mkdirSync(join(directory, 'fs'), { recursive: true, mode: 0o755 });
  mkdirSync(join(directory, 'ctl'), { mode: 0o700 });
  mkdirSync(join(directory, 'run'), { mode: 0o700 });
  mkdirSync(join(directory, 'etc'), { mode: 0o755 });
  mkdirSync(join(directory, 'root'), { mode: 0o755 });
  for (const { path, owner, mode } of skeleton(record.spec.workdir)) {
    const target = join(directory, 'fs', path);
    mkdirSync(target, { recursive: true });
    chmodSync(target, mode);
    if (owner === 'host' || !runsAsRoot()) continue;
    const { uid, gid } = ownerOf(record.accounts, owner);
    chownSync(target, uid, gid);
  }
  writeAccountFiles(join(directory, 'etc'), record.accounts);
  writeFileSync(join(directory, 'meta.json'), JSON.stringify(record), { mode: 0o600 });
}

export function readSandboxDirectory(path: string): SandboxDirectory {
  const record: SandboxRecord = JSON.parse(readFileSync(join(path, 'meta.json'), 'utf8'));
  return { ...record, path };
}

/** Turns an absolute path inside the sandbox into one relative to `fs`. Throws `FileRefused` for a directory of the host. */
export function insidePath(path: string): string {
  const [top] = path.split('/').filter((segment) => segment !== '');
  if (!path.startsWith('/') || top === undefined || systemNames.has(top)) {
    const expected = 'an absolute path outside the system directories, which are read-only in a local sandbox';
    throw new FileRefused('outside', path, `expected ${expected}, got ${JSON.stringify(path)}`);
  }
  return path.slice(1);
}

/** The directories below `fs` that a command of this account sees under the same name. */
export function visibleDirectories(sandbox: SandboxDirectory, account: Account): readonly string[] {
  const top = readdirSync(treeOf(sandbox));
  if (account === 'grader') return top;
  return [...top.filter((name) => !hiddenFromAgent.has(name)), ...shownToAgent];
}

/** Writes passwd and group: git, ssh and Node's os.userInfo() fail for a user without an entry. */
function writeAccountFiles(etc: string, { agent, grader }: Accounts): void {
  const passwd = [
    'root:x:0:0:root:/root:/bin/sh',
    `agent:x:${agent.uid}:${agent.gid}:agent:/home/agent:/bin/sh`,
    `grader:x:${grader.uid}:${grader.gid}:grader:/root:/bin/sh`,
  ];
  const group = ['root:x:0:', `agent:x:${agent.gid}:`, `grader:x:${grader.gid}:`];
  for (const [name, lines] of Object.entries({ passwd, group })) {
    writeFileSync(join(etc, name), `${lines.join('\n')}\n`);
    chmodSync(join(etc, name), 0o644);
  }
}
