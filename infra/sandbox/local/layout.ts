/**
 * Where a local sandbox lies on the host, and which directories of it each account sees.
 *
 *   DIR/meta.json   spec, uids, creation time            DIR/fs/...      what appears inside, by the same names
 *   DIR/etc/        passwd and group shown inside        DIR/ctl/KEY/    claim, pid, log and exit of each process
 *
 *   DIR/run/        pids of foreground commands            DIR/root/       mount point of a confinement that needs one
 *
 * DIR and DIR/ctl belong to the caller and never appear inside.
 */
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileRefused } from '../failure.ts';
import type { Account, SandboxSpec } from '../sandbox.ts';
import { type Accounts, ownerOf, runsAsRoot } from './accounts.ts';
import type { ControlGroup } from './control-group.ts';

export interface LocalMeta {
  readonly spec: SandboxSpec;
  readonly accounts: Accounts;
  readonly group?: ControlGroup;
  readonly createdAtMs: number;
}

/** A place of one sandbox: its directory on the host and what was recorded when it was made. */
export interface LocalPlace extends LocalMeta {
  readonly directory: string;
}

export const treeOf = (place: LocalPlace): string => join(place.directory, 'fs');
export const controlOf = (place: LocalPlace): string => join(place.directory, 'ctl');
/** Pids of foreground commands while they run. */
export const executionsOf = (place: LocalPlace): string => join(place.directory, 'run');
export const etcOf = (place: LocalPlace): string => join(place.directory, 'etc');

/** Top-level names that are the host's, read-only, or made anew for each command. */
const systemNames = new Set('bin boot dev etc gw lib lib32 lib64 libx32 proc run sbin sys usr var'.split(' '));

interface Made {
  readonly path: string;
  readonly owner: Account | 'host';
  readonly mode: number;
}

const skeleton = (workdir: string): readonly Made[] => [
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

/** What the agent's commands don't get to see, even where no second uid protects it. */
const hiddenFromAgent = new Set(['tests', 'root', 'logs']);
const shownToAgent = ['logs/agent'];

/** Makes the directories of a new sandbox below `directory`. */
export function makeLayout(directory: string, meta: LocalMeta): void {
  mkdirSync(join(directory, 'fs'), { recursive: true, mode: 0o755 });
  mkdirSync(join(directory, 'ctl'), { mode: 0o700 });
  mkdirSync(join(directory, 'run'), { mode: 0o700 });
  mkdirSync(join(directory, 'etc'), { mode: 0o755 });
  mkdirSync(join(directory, 'root'), { mode: 0o755 });
  for (const { path, owner, mode } of skeleton(meta.spec.workdir)) {
    const target = join(directory, 'fs', path);
    mkdirSync(target, { recursive: true });
    chmodSync(target, mode);
    if (owner === 'host' || !runsAsRoot()) continue;
    const { uid, gid } = ownerOf(meta.accounts, owner);
    chownSync(target, uid, gid);
  }
  writeAccountFiles(join(directory, 'etc'), meta.accounts);
  writeFileSync(join(directory, 'meta.json'), JSON.stringify(meta), { mode: 0o600 });
}

export function readPlace(directory: string): LocalPlace {
  const meta: LocalMeta = JSON.parse(readFileSync(join(directory, 'meta.json'), 'utf8'));
  return { ...meta, directory };
}

/** Splits an absolute path inside into segments below `fs`; the host's own directories are refused. */
export function insidePath(path: string): string {
  const [top] = path.split('/').filter((segment) => segment !== '');
  if (!path.startsWith('/') || top === undefined || systemNames.has(top)) {
    const expected = 'an absolute path outside of the system directories, which a local sandbox shows read-only';
    throw new FileRefused('outside', path, `expected ${expected}, got ${JSON.stringify(path)}`);
  }
  return path.slice(1);
}

/** The directories below `fs` that a command of this account sees under the same name. */
export function visibleDirectories(place: LocalPlace, account: Account): readonly string[] {
  const top = readdirSync(treeOf(place));
  if (account === 'grader') return top;
  return [...top.filter((name) => !hiddenFromAgent.has(name)), ...shownToAgent];
}

export const homeOf = (account: Account): string => (account === 'agent' ? '/home/agent' : '/root');

/** Programs ask who they are: git, ssh and node's os.userInfo() fail without an entry. */
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
