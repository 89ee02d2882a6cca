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
  workspaceTask,
} from '../../helpers/sandbox/workspaces.ts';
import { createFileStore } from '../../helpers/store/file-store.ts';

/*
 * Random workspaces with repositories of every kind inside, prepared, edited at random, captured and applied to a fresh one: the files
 * must be equal, and no later history may be within reach.
 */

const workdir = '/workspace';

/** Names that git quotes, that look like options or patterns, and that a script could split. */
const usual = [
  'plain',
  'sp ace',
  'données',
  'new\nline',
  'qu"ote',
  'back\\slash',
  'tab\there',
  '-dash',
  ':(top)x',
  '*?[',
];
const unusual = ['a:b', '$HOME', '%s', ' lead', 'trail ', "it's", '\xff\xfe'];
const names = [...usual, ...unusual];
const name = fc.constantFrom(...names);
const directory = fc.array(name, { minLength: 1, maxLength: 2 }).map((parts) => parts.join('/'));

/** The kinds of repositories: shell code that makes one in the directory $1, whose later commits hold the word ANSWER. */
const kinds = {
  alive: 'repo "$1"',
  'a submodule': 'repo /tmp/lib; git submodule --quiet add --force /tmp/lib "$1" && git commit -qm sub',
  'a submodule that was removed':
    'repo /tmp/lib; git submodule --quiet add --force /tmp/lib "$1" && git commit -qm sub && rm -rf .git/modules "$1/.git"',
  'a submodule that leads nowhere':
    'repo /tmp/lib; git submodule --quiet add --force /tmp/lib "$1" && git commit -qm sub && rm -rf .git/modules',
  'a submodule that was copied in':
    'repo /tmp/lib; git submodule --quiet add --force /tmp/lib "$1" && git commit -qm sub && rm -rf "$1/.git" && cp -R /tmp/lib/.git "$1/.git"',
  'without a commit': 'mkdir -p "$1"; git init -q "$1"; echo in >"$1/f"; git -C "$1" add f',
  'without a commit and without an index': 'mkdir -p "$1"; git init -q "$1"; echo in >"$1/f"',
  ignored: 'repo "$1"; echo "*" >"$1/.gitignore"; echo "/ignored/" >>.gitignore; mkdir -p ignored; repo "ignored/$1"',
  'with uncommitted work': 'repo "$1"; rm "$1/f"; mkdir "$1/f"; echo x >"$1/f/x"; echo y >"$1/new"; rm "$1/g"',
  'without HEAD': 'repo "$1"; rm "$1/.git/HEAD"',
  'a file that names no repository': 'mkdir -p "$1"; echo "gitdir: /nowhere" >"$1/.git"; echo in >"$1/f"',
  'a link': 'mkdir -p "$1"; repo /tmp/lib; ln -s /tmp/lib/.git "$1/.git"; echo in >"$1/f"',
  nested: 'repo "$1"; repo "$1/in ner"; repo "$1/in ner/ë"',
  'with names of its own':
    'repo "$1"; echo x >"$1/n\nl"; echo x >"$1/ü"; git -C "$1" add -A; git -C "$1" commit -qm names',
} as const;
type Kind = keyof typeof kinds;

const functions = `
git config --global protocol.file.allow always
say() { echo "$2" >"$1/f"; echo "$2" >"$1/g"; git -C "$1" add -A; git -C "$1" commit -qm "$2"; }
repo() { [ ! -e "$1/.git" ] || return 0; mkdir -p "$1" && git init -q -b main "$1" && say "$1" past && say "$1" now && say "$1" ANSWER && git -C "$1" reset -q --hard HEAD~1 && git -C "$1" tag later HEAD@{1}; }
`;

/** Files whose attributes, encodings or names git does not accept. */
const odd = [
  'echo "*.u16 working-tree-encoding=UTF-16" >.gitattributes; printf "\\377\\376\\000" >bad.u16; printf "\\360\\237" >"other.u16"',
  'echo "* text eol=crlf" >.gitattributes; printf "a\\r\\nb\\n" >mixed',
  'mkdir -p deep/GIT~1; echo x >deep/git~1; ln -s /etc/passwd out; ln -s . loop; mkfifo pipe',
  'mkdir -p venv/lib; echo "*" >venv/.gitignore; echo x >venv/lib/x',
  'echo "*.log" >.gitignore; echo x >a.log; git add -f a.log; echo "!a.log" >.git/info/exclude',
];
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

interface Workspace {
  readonly isRepository: boolean;
  readonly inner: readonly { readonly at: string; readonly kind: Kind }[];
  readonly odd: readonly string[];
}

const workspace: fc.Arbitrary<Workspace> = fc.record({
  isRepository: fc.boolean(),
  inner: fc.uniqueArray(fc.record({ at: directory, kind: fc.constantFrom(...(Object.keys(kinds) as Kind[])) }), {
    minLength: 1,
    maxLength: 4,
    selector: ({ at }) => at.split('/')[0],
  }),
  odd: fc.subarray(odd, { maxLength: 2 }),
});

/** Returns the set-up command of a workspace. Names are latin-1, as in edits. */
function setUp({ isRepository, inner, odd: files }: Workspace): string {
  const lines = [
    functions,
    'git init -q -b main . && echo a >a && git add -A && git commit -qm first',
    ...files,
    ...inner.map(({ at, kind }) => `( set -- ${quote(`./${at}`)}; ${kinds[kind]} )`),
    ...(isRepository ? [] : ['rm -rf .git']),
    'rm -rf /tmp/lib; true',
  ];
  const bytes = Buffer.from(lines.join('\n'), 'latin1');
  const octal = [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
  return `cd ${workdir} && printf '${octal}' >/tmp/set-up && bash /tmp/set-up >/tmp/set-up.log 2>&1`;
}

/** Edits of a workspace's own files, and of those of the repositories inside. */
const editsOf = ({ inner }: Workspace): fc.Arbitrary<Edit[]> => {
  const places = [
    'a',
    'new/file',
    'mixed',
    'bad.u16',
    ...inner.flatMap(({ at }) => [`${at}/f`, `${at}/new`, `${at}/d/x`]),
  ];
  const path = fc.constantFrom(...places);
  const bytes = fc.constantFrom('two\n', '', 'a\r\nb', '\x00\xff', '\xff\xfea\x00');
  const one: fc.Arbitrary<Edit> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), path, bytes, executable: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), path }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('link' as const), path, target: fc.constantFrom('a', 'nowhere') }),
    },
    { weight: 1, arbitrary: fc.constant({ do: 'run' as const, command: 'git add -A; git commit -qm work' }) },
  );
  return fc.array(one, { minLength: 1, maxLength: 8 });
};

/** Prints what reveals a later commit in any repository of the workspace. */
const search = `find . -name .git -prune -exec sh -c 'for one; do
  git --git-dir="$one" cat-file --batch-all-objects --batch --buffer 2>/dev/null | grep -a ANSWER; grep -ra ANSWER "$one"; git --git-dir="$one" for-each-ref | grep -a later
done' sh {} + 2>/dev/null; true`;

/** Resolves after `numRuns` workspaces survived; throws with the smallest that did not. */
export async function hostileRoundTrips(maker: SandboxMaker, numRuns: number, seed: number): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'temper-hostile-'));
  const store = createFileStore(root);
  const { signal } = new AbortController();
  const runOnce = async ([made, steps]: readonly [Workspace, readonly Edit[]]): Promise<void> => {
    const task = workspaceTask(new Map(), [setUp(made)]);
    const [agent, fresh] = [await maker.make(), await maker.make()];
    try {
      const { baseCommit } = await prepareWorkspace(agent, task, { workdir, keep: true }, signal);
      const other = await prepareWorkspace(fresh, task, { workdir, keep: false }, signal);
      assert.equal(other.baseCommit, baseCommit);
      const limits = { account: 'agent', timeoutMs: 60_000, maxOutputBytes: 2 ** 20, env: {} } as const;
      const { stdout } = await agent.exec({ ...limits, argv: ['bash', '-c', search] }, signal);
      assert.equal(String(stdout), '', 'later history is within reach');
      const before = await read(fresh, signal);
      await edit(agent, steps, signal);
      const after = await read(agent, signal);
      const diff = await captureDiff(agent, store, { workdir, baseCommit, failedBefore: false }, signal);
      const patch = await store.get(diff.patch.digest);
      const { applied, refusal } = await applyPatch(fresh, workdir, patch, signal);
      assert.deepEqual([applied, refusal], ['exact', ''], Buffer.from(patch).toString('latin1').slice(0, 2_000));
      assert.deepEqual(counted(await read(fresh, signal), before), counted(after, before));
    } finally {
      await maker.clear();
    }
  };
  const cases = workspace.chain((made) => fc.tuple(fc.constant(made), editsOf(made)));
  const done: Edit = { do: 'write', path: 'done', bytes: 'fixed\n', executable: false };
  const all = (Object.keys(kinds) as Kind[]).map((kind, index) => ({ at: names[index] ?? kind, kind }));
  // One of the others removes where a submodule lives.
  const isAlive = ({ kind }: { readonly kind: Kind }): boolean => kind === 'a submodule';
  const examples = [all.filter((one) => !isAlive(one)), all.filter(isAlive)].map(
    (inner): [readonly [Workspace, readonly Edit[]]] => [[{ isRepository: true, inner, odd }, [done]]],
  );
  try {
    await fc.assert(fc.asyncProperty(cases, runOnce), { numRuns: numRuns + examples.length, examples, seed });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** The files that count: all but new ones in directories that the base ignores. */
const counted = (all: Readonly<Record<string, Entry>>, before: Readonly<Record<string, Entry>>) =>
  Object.fromEntries(Object.entries(all).filter(([name]) => Object.hasOwn(before, name) || !isIgnored(name, before)));

const isIgnored = (name: string, before: Readonly<Record<string, Entry>>): boolean =>
  Object.entries(before).some(([file, [, , text]]) => {
    if (!file.endsWith('.gitignore')) return false;
    const at = file.slice(0, -'.gitignore'.length);
    if (!name.startsWith(at)) return false;
    const rest = name.slice(at.length);
    return text
      .split('\n')
      .some(
        (rule) =>
          rule === '*' ||
          (rule === '/ignored/' && rest.startsWith('ignored/')) ||
          (rule === '*.log' && rest.endsWith('.log')),
      );
  });
