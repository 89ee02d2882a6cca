import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { captureDiff } from '../../../infra/grading/capture/capture-diff.ts';
import { applyPatch } from '../../../infra/grading/patch/apply-patch.ts';
import { prepareWorkspace } from '../../../infra/grading/workspace/prepare-workspace.ts';
import {
  type Edit,
  type Entry,
  edit,
  read,
  type SandboxMaker,
  treeOf,
  workspaceTask,
} from '../../helpers/sandbox/workspaces.ts';
import { createFileStore } from '../../helpers/store/file-store.ts';

/* Random edits of a workspace, captured and applied to a fresh one, in any kind of sandbox. */

const workdir = '/workspace';

/** Attributes of the base repository that change what git stores. Only the base's settings and ignore rules count. */
const attributes =
  '*.txt text eol=crlf\n*.lf text=auto\n*.id ident\n*.u16 working-tree-encoding=UTF-16\nd/** export-ignore\n*.up filter=up\n';
const base = {
  '.gitignore': '*.pyc\n/build/\n!kept.pyc\n',
  '.gitattributes': attributes,
  'd/.gitignore': 'local*\n',
  a: 'one\ntwo\nthree\n',
  'crlf.txt': 'one\r\ntwo\r\n',
  'mixed.lf': 'one\r\ntwo\nthree',
  'd/x': 'below\n',
  'd/e/deep.id': '$Id$\n$Id: forged $\n',
  'wide.u16': '\xff\xfeh\x00i\x00\n\x00',
  'loud.up': 'quiet\n',
  'sp ace/f': 'spaced\n',
  binary: '\x00\x01\x02\xff\r\n',
  empty: '',
  'build/made': 'ignored at the base\n',
};
const setup = [
  'git init -q . && git config core.autocrlf true && git config core.fileMode false && git config core.quotePath false',
  'git config filter.up.clean "tr a-z A-Z" && git config filter.up.smudge "tr A-Z a-z" && git config diff.noprefix true',
  'ln -s d linked && chmod 755 a && printf old > "$(printf "n\\377me")"',
  'git init -q inner && printf in > inner/f && git -C inner add -A && git -C inner commit -qm in',
  'printf more > inner/tracked.pyc && git -C inner add -f tracked.pyc && git -C inner commit -qm more',
];
const baseNames = [...Object.keys(base), 'linked', 'n\xffme', 'inner/f', 'inner/tracked.pyc'];

const segment = fc.constantFrom(
  ...[
    'a',
    'b',
    'd',
    'e',
    'x',
    'sp ace',
    'qu"ote',
    'new\nline',
    '\xff\xfe',
    'back\\slash',
    '\xc3\xa4',
    ':(top)x',
    '-dash',
  ],
  ...[
    'git~1',
    '*?[',
    'tab\there',
    'f.txt',
    'f.lf',
    'f.id',
    'f.u16',
    'f.up',
    'x.pyc',
    'kept.pyc',
    'build',
    'local.c',
    'inner',
  ],
);
const path = fc.oneof(
  { weight: 3, arbitrary: fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/')) },
  { weight: 2, arbitrary: fc.constantFrom(...baseNames) },
);
const bytes = fc.oneof(
  fc.constantFrom(
    '',
    '\n',
    'no newline',
    'one\ntwo\n',
    'one\r\ntwo\r\n',
    'mixed\r\nends\n',
    '$Id$\n',
    '\xff\xfea\x00\n\x00',
    'UPPER\n',
  ),
  fc.constantFrom(
    'old mac\rdiff --git a/x b/x\rnew file mode 120000\r',
    '-- \n+++ b/x\n@@ -1 +1 @@\n',
    'one\ntwo\nTHREE\n',
    '\x00\n',
  ),
  fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)), maxLength: 60 }),
);
const commands = [
  'git add -A; git commit -qm work',
  'git checkout -q --detach; git add -A; git commit -qm loose',
  'git checkout -qb other; git add -A; git commit -qm other; git branch -D main',
  'git stash -q --include-untracked; git stash apply -q',
  'git tag mine; git update-ref -d HEAD',
  'git config core.autocrlf input; git config core.excludesFile /workspace/a; git config core.worktree /tmp',
  'git config core.fsmonitor "rm -rf /workspace/a; false"; git update-index --assume-unchanged a; git sparse-checkout set d',
  'rm -rf .git',
  'rm -rf .git; echo "gitdir: /nowhere" > .git',
  'rm -rf .git; ln -s /tmp .git',
  'rm -rf .git; git init -q .; git add -A; git commit -qm mine',
  'git -C d init -q; git -C d add -A; git -C d commit -qm inner; git add -A; git commit -qm outer',
  'rm -rf inner/.git',
  'printf "%s\\n" "[core]" "autocrlf = true" "excludesFile = /workspace/.gitattributes" > ~/.gitconfig; mkdir -p ~/.config/git; echo "*" > ~/.config/git/ignore',
];
const commandRun = fc.record({ do: fc.constant('run' as const), command: fc.constantFrom(...commands) });
const editsOf = (at: fc.Arbitrary<string>): fc.Arbitrary<Edit> =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constant('write' as const), path: at, bytes, executable: fc.boolean() }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), path: at }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('executable' as const), path: at }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('link' as const),
        path: at,
        target: fc.constantFrom('a', 'd', 'b/x', 'nowhere', '\xff'),
      }),
    },
    { weight: 2, arbitrary: commandRun },
  );
const anyEdits: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 13, arbitrary: editsOf(path) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('repository' as const), path }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('*\n', '!*.pyc\n', '', attributes, '* -text\n* binary\n').chain((text) =>
      fc.record({
        do: fc.constant('write' as const),
        path: fc.constantFrom('.gitignore', '.gitattributes', 'd/.gitattributes', 'b/.gitignore', 'x/.gitattributes'),
        bytes: fc.constant(text),
        executable: fc.constant(false),
      }),
    ),
  },
);
/** Edits without new or ignored files, as most agents make them. They are captured by a shorter path. */
const editsOfBase: fc.Arbitrary<Edit[]> = fc
  .array(editsOf(fc.constantFrom(...baseNames.filter((name) => name !== 'build/made'))), {
    minLength: 1,
    maxLength: 12,
  })
  .map((steps) => [{ do: 'remove', path: 'build/made' }, ...steps]);
const edits = fc.oneof(fc.array(anyEdits, { minLength: 1, maxLength: 30 }), editsOfBase);

/** Whether the base's three rules ignore a name: a second implementation, since git's is under test. */
function isIgnored(name: string): boolean {
  const parts = name.split('/');
  if (parts.length > 1 && parts[0] === 'build') return true;
  return parts.some(
    (part, index) =>
      (part.endsWith('.pyc') && part !== 'kept.pyc') || (parts[0] === 'd' && index > 0 && part.startsWith('local')),
  );
}

/** Whether a name replaces a directory of the base, and so shows that it was removed. */
const replacesDirectory = (name: string): boolean => baseNames.some((other) => other.startsWith(`${name}/`));

/** Edits that replace directories with content that no diff holds: a repository, ignored files. */
const examples: readonly (readonly Edit[])[] = [
  [
    { do: 'link', path: 'inner', target: 'a' },
    { do: 'write', path: 'build', bytes: 'file\n', executable: true },
  ],
];

/** Resolves after `numRuns` random workspaces survived the round trip; throws with the smallest that did not. */
export async function roundTrips(maker: SandboxMaker, numRuns: number, seed?: number): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'temper-round-trip-'));
  const store = createFileStore(root);
  const { signal } = new AbortController();
  const task = workspaceTask(treeOf(base), setup);
  const runOnce = async (steps: readonly Edit[]): Promise<void> => {
    const [agent, fresh] = [await maker.make(), await maker.make()];
    try {
      const { baseCommit } = await prepareWorkspace(agent, task, { workdir, keep: true }, signal);
      const other = await prepareWorkspace(fresh, task, { workdir, keep: false }, signal);
      assert.equal(other.baseCommit, baseCommit);
      const before = await read(fresh, signal);
      await edit(agent, steps, signal);
      const after = await read(agent, signal);
      const diff = await captureDiff(agent, store, { workdir, baseCommit, failedBefore: false }, signal);
      const patch = await store.get(diff.patch.digest);
      assert.deepEqual(await applyPatch(fresh, workdir, patch, signal), {
        applied: 'exact',
        refusal: '',
        timedOut: false,
      });
      assert.deepEqual(await read(fresh, signal), expected(before, after));
      const again = await captureDiff(agent, store, { workdir, baseCommit, failedBefore: false }, signal);
      assert.deepEqual(again, diff);
    } finally {
      await maker.clear();
    }
  };
  try {
    await fc.assert(fc.asyncProperty(edits, runOnce), {
      numRuns: numRuns + examples.length,
      examples: examples.map((steps): [Edit[]] => [[...steps]]),
      ...(seed !== undefined && { seed }),
    });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

type Workspace = Readonly<Record<string, Entry>>;

/** The agent's files without new ones that the base ignores, together with the fresh workspace's own ignored files. */
function expected(before: Workspace, after: Workspace): Workspace {
  const tracked = (name: string): boolean => baseNames.includes(name) && name !== 'build/made';
  const counts = (name: string): boolean => tracked(name) || !isIgnored(name) || replacesDirectory(name);
  const ofAgent = Object.entries(after).filter(([name]) => counts(name));
  const isBelowFile = (name: string): boolean => ofAgent.some(([file]) => name.startsWith(`${file}/`));
  const ofBase = Object.entries(before).filter(([name]) => !counts(name) && !isBelowFile(name));
  return Object.fromEntries([...ofAgent, ...ofBase]);
}
