import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyChanges } from '../carry/apply-changes.ts';
import { packBaseline, unpackBaseline } from '../carry/baseline.ts';
import { findChanges, noteFiles } from '../carry/find-changes.ts';
import type { CarryScope } from '../carry/scan.ts';
import { ownPaths, type SandboxChanges } from '../changes.ts';
import { endAccounts } from './end-processes.ts';
import { type SandboxDirectory, treeOf, visibleDirectories } from './layout.ts';

const baselineOf = ({ path }: SandboxDirectory): string => join(path, 'baseline');

/**
 * Creates the functions that carry a local sandbox's changes: all that its agent may write is below the directories that it sees.
 */
export function createLocalChanges(sandbox: SandboxDirectory): SandboxChanges {
  const { accounts, spec } = sandbox;
  const mounted = spec.mounts.map(({ target }) => target);
  const scope = (leftOut: readonly string[]): CarryScope => ({
    root: treeOf(sandbox),
    uid: accounts.agent.uid,
    grader: accounts.grader.uid,
    starts: visibleDirectories(sandbox, 'agent').map((name) => `/${name}`),
    fixed: [...ownPaths, ...mounted, ...leftOut],
  });
  return {
    async note() {
      const packed = packBaseline(await noteFiles(scope([])));
      const file = baselineOf(sandbox);
      writeFileSync(`${file}.new`, packed, { mode: 0o600 });
      renameSync(`${file}.new`, file);
    },
    async read(leftOut, signal) {
      await endAccounts(sandbox, ['agent']);
      signal.throwIfAborted();
      const file = baselineOf(sandbox);
      const baseline = existsSync(file) ? unpackBaseline(readFileSync(file)) : null;
      return findChanges(scope(leftOut), baseline);
    },
    write: (changes) => applyChanges(scope([]), changes),
    // The programs are the host's, which no agent can change.
    changedPrograms: async () => [],
  };
}
