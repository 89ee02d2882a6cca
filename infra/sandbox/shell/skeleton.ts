import { pack } from 'tar-stream';
import { addTree, collect } from '../files.ts';
import type { SandboxSpec } from '../sandbox.ts';
import { rootUid, uidOf } from './accounts.ts';
import { adoptDirectoryOf } from './adopt-workdir.ts';

/** The parts of an image's content that decide what is added to it. */
export interface ImageFacts {
  /** The image's own `etc/passwd` and `etc/group`. */
  readonly accountFiles: ReadonlyMap<string, string>;
  readonly hasWorkdir: boolean;
  /** The path of its shell, to which `/bin/sh` is then a link; null if it is there. */
  readonly shell: string | null;
}

/**
 * Packs what a sandbox holds beyond its image before anything runs in it: the directories, the account files and the spec's files,
 * each with its owner. An image's own working directory is adopted only afterwards, so there the files come later. `hosts` is
 * the content of `/etc/hosts`; null if something else writes it.
 */
export function packSkeleton(
  spec: SandboxSpec,
  { accountFiles, hasWorkdir, shell }: ImageFacts,
  hosts: string | null,
): Promise<Buffer> {
  const agent = spec.root ? rootUid : uidOf(spec.name, 'agent');
  const tar = pack();
  const packed = collect(tar);
  const made = new Set<string>();
  const directory = (name: string, uid: number, mode: number): void => {
    if (made.has(name)) return;
    made.add(name);
    tar.entry({ name: `${name}/`, type: 'directory', uid, gid: uid, mode });
  };
  const adopts = hasWorkdir && !spec.root;
  if (adopts) directory(adoptDirectoryOf(spec.workdir).slice(1), agent, 0o755);
  else if (!hasWorkdir) directory(spec.workdir.slice(1), agent, 0o755);
  directory('tests', 0, 0o700);
  directory('logs', 0, 0o755);
  directory('logs/verifier', 0, 0o700);
  directory('logs/agent', agent, 0o755);
  const entries = {
    'etc/passwd': `agent:x:${agent}:${agent}:agent:/home/agent:/bin/sh\n`,
    'etc/group': `agent:x:${agent}:\n`,
  };
  if (!spec.root) directory('home/agent', agent, 0o755);
  for (const [name, line] of spec.root ? [] : Object.entries(entries)) {
    tar.entry({ name, mode: 0o644, uid: 0, gid: 0 }, (accountFiles.get(name) ?? '') + line);
  }
  if (shell !== null) tar.entry({ name: 'bin/sh', type: 'symlink', linkname: shell, uid: 0, gid: 0 });
  if (hosts !== null) tar.entry({ name: 'etc/hosts', mode: 0o644, uid: 0, gid: 0 }, hosts);
  for (const { tree, at, owner } of adopts ? [] : (spec.files ?? [])) {
    const uid = spec.root ? rootUid : uidOf(spec.name, owner);
    if (at !== spec.workdir || !hasWorkdir) directory(at.slice(1), uid, 0o755);
    addTree(tar, tree, { at, uid, gid: uid });
  }
  tar.finalize();
  return packed;
}
