import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type HarborTask, readHarborTask } from '../../infra/harbor/harbor-task.ts';
import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createPipeline, type Evaluated, type OpenProvider, type Pipeline } from './pipeline.ts';

/*
 * What an agent may leave so that its work is hard to read: Python that runs in a directory of the agent. Each act ends well, so that
 * what it could not do in a kind of sandbox is left out.
 */

const prelude = `
import os, socket, struct, subprocess, sys
def attempt(*works):
    for work in works:
        try: work()
        except (OSError, ValueError, OverflowError): pass
def put(name, text=b'x', mode=0o644):
    def work():
        with open(name, 'wb') as file: file.write(text)
        os.chmod(name, mode)
    attempt(work)
def sh(text): subprocess.run(['bash', '-c', text], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
def git(text): sh('cd /workspace; ' + text)
def down(name, depth):
    home = os.open('.', os.O_RDONLY)
    def work():
        for _ in range(depth):
            os.mkdir(name)
            os.chdir(name)
    attempt(work)
    put('bottom')
    os.fchdir(home)
def acl(name):
    # Denies the accounts of user 0 all rights, which no mode shows.
    entry = lambda tag, rights, who=0xffffffff: struct.pack('<HHI', tag, rights, who)
    value = struct.pack('<I', 2) + entry(1, 6) + entry(2, 0, 0) + entry(4, 4) + entry(16, 7) + entry(32, 4)
    attempt(lambda: os.setxattr(name, 'system.posix_acl_access', value))
`;

const odd = [
  "b'line\\nfeed'",
  "b'end\\n'",
  "b'\\xff\\xfe'",
  "b'\\xef\\xbf\\xbd'",
  "b'tab\\t\"quote\\\\back'",
  "b'-rf'",
  "b'a -> b'",
  "b':(glob)**'",
  "b'$(touch out)'",
  "b'=name'",
  "b'\\r\\x1b[2J\\x7f'",
  "b' '",
  "b'x' * 255",
  "b'\\xc3\\xa9' * 127",
  "b'.GIT'",
  "b'.gitmodules'",
  "b'contents.json'",
];

/** The acts by name. Those that take long for a captured tree run only in long tests. */
/** The name of an act whose tree is deeper than the kernel's longest path. */
const deep = 'directories of long names, beyond the longest path';

const acts: Readonly<Record<string, string>> = {
  [deep]: "down(b'l' * 255, 40)",
  'a path just below the longest one': "down(b'p' * 250, 15)",
  'odd names of files': `for name in [${odd.join(', ')}]: put(name)`,
  'odd names of directories': `for name in [${odd.join(', ')}]:
    attempt(lambda: os.mkdir(name + b'd' if len(name) < 200 else b'd' + name[1:]), lambda: put((name + b'd' if len(name) < 200 else b'd' + name[1:]) + b'/in'))`,
  'odd targets of links': `for at, to in enumerate([b'\\xff', b'line\\nfeed', b't' * 4095, b'loop5', b'/proc/self/root', b'.', b'..', b'/dev/zero', b'/tests/test.sh']):
    attempt(lambda: os.symlink(to, b'loop%d' % (at + 2)))`,
  'loops of links':
    "attempt(lambda: os.symlink(b'b', b'a-loop'), lambda: os.symlink(b'a-loop', b'b'), lambda: os.symlink(b'.', b'here'), lambda: os.symlink(b'itself', b'itself'))",
  'pipes and sockets': `attempt(lambda: os.mkfifo('pipe'), lambda: socket.socket(socket.AF_UNIX).bind('socket'), lambda: (os.mkdir('pipes'), os.mkfifo('pipes/in')))
attempt(lambda: os.remove('/workspace/a'), lambda: os.mkfifo('/workspace/a'))`,
  'closed files and directories': `for mode in [0, 0o100, 0o200, 0o300, 0o400, 0o600, 0o2000, 0o4000, 0o1000, 0o7777]:
    put('file%o' % mode, b'x', mode)
    attempt(lambda: os.mkdir('dir%o' % mode), lambda: put('dir%o/in' % mode, b'x', mode), lambda: os.mkdir('dir%o/deeper' % mode), lambda: os.chmod('dir%o' % mode, mode))`,
  'a closed workdir': "os.chmod('/workspace', 0)",
  'lists of rights':
    "put('denied'); acl('denied'); attempt(lambda: os.mkdir('shut')); put('shut/in'); acl('shut'); acl('/workspace/a')",
  'many hard links':
    "put('one'); attempt(*[(lambda n: lambda: os.link('one', 'hard%d' % n))(n) for n in range(300)], lambda: os.link('/workspace/a', 'b-hard'))",
  'odd times': `for at in [-2 ** 40, -1, -9 * 10 ** 9, 2 ** 33, 2 ** 34 - 1, 10 ** 13, 2 ** 62]:
    put('time%d' % at); attempt(lambda: os.utime('time%d' % at, (at, at)))
attempt(lambda: os.mkdir('old'), lambda: os.utime('old', (-10 ** 9, -10 ** 9)), lambda: os.utime('/workspace', (10 ** 11, 10 ** 11)))`,
  'attributes of files':
    "put('attributed'); attempt(lambda: os.setxattr('attributed', 'user.large', b'v' * 3000), lambda: os.setxattr('.', b'user.' + b'n' * 200, b'\\x00\\xff'))",
  'no repository': "git('rm -rf .git')",
  'a repository that is a file': "git('rm -rf .git; echo gitdir: /tmp/elsewhere >.git')",
  'a repository that is a loop': "git('rm -rf .git; ln -s .git .git')",
  'a broken index, locks and refs':
    "git('head -c 5000 /dev/urandom >.git/index; touch .git/index.lock .git/HEAD.lock .git/config.lock; echo broken >.git/HEAD; rm -rf .git/refs')",
  'a broken configuration':
    'git(\'head -c 5000 /dev/urandom >.git/config; echo "[" >>.git/config; printf "[core]\\\\n worktree = /\\\\n bare = true\\\\n" >~/.gitconfig\')',
  'hooks, filters and monitors': `git('''for one in pre-commit post-index-change fsmonitor-watchman; do printf "#!/bin/sh\\\\nexit 1\\\\n" >.git/hooks/$one; chmod +x .git/hooks/$one; done
git config core.fsmonitor "exit 3;"; git config filter.f.clean "exit 3"; git config filter.f.required true; git config core.hooksPath /workspace; git config core.attributesFile /workspace/.gitattributes; git config diff.external false
printf "* filter=f diff=f merge=f text eol=crlf working-tree-encoding=UTF-16 ident export-ignore\\\\n" >.gitattributes; mkdir -p .git/info; cp .gitattributes .git/info/attributes; echo "*" >.gitignore; echo changed >a''')`,
  'submodules and worktrees': `git('''git init -q sub; cd sub; echo 1 >in; git add in; git -c user.name=a -c user.email=a@b commit -qm 1; cd ..
git -c protocol.file.allow=always submodule add ./sub module; git worktree add -f tree HEAD; git worktree add -f /tmp/tree HEAD; printf "[submodule \\\\"x\\\\"]\\\\n path = ../..\\\\n url = -u./x\\\\n" >>.gitmodules''')`,
  'broken repositories inside': `git('''for n in 1 2 3 4 5 6; do git init -q in$n; echo $n >in$n/file; done; rm in1/.git/HEAD; head -c 300 /dev/urandom >in2/.git/index; rm -rf in3/.git; echo "gitdir: nowhere" >in3/.git
rm -rf in4/.git; ln -s .git in4/.git; rm -rf in5/.git; mkfifo in5/.git; chmod 0 in6/.git; git init -q --bare bare; git init -q "$(printf "line\\\\nfeed")"; git init -q "$(printf "\\\\377")"''')`,
  'directories in place of files, and files of directories':
    "git('rm a; mkdir a; echo 1 >a/in; rm -r src; echo src >src; rm .gitignore; ln -s loop .gitignore; ln -s .gitignore loop')",
  'places of temper': `sh('''mkdir -p /tmp/temper-patch/first /tmp/temper-hidden-tests; ln -s /nowhere /tmp/temper-restore; mkdir -p /tmp/temper-patch/git; mkfifo /tmp/temper-patch/whole; mkdir -p /logs/agent/x /workspace.temper-copy.abcdef''')`,
  'no workdir':
    "sh('rm -rf /workspace/* /workspace/.[!.]*; rmdir /workspace; mv /workspace /tmp/moved; ln -s /tmp/moved /workspace')",
};

/** Acts that take too long for each change of this repository. */
const slowActs: Readonly<Record<string, string>> = {
  'directories 4,096 deep': "down(b'd', 4096)",
  'sparse files':
    "put('sparse'); attempt(lambda: os.truncate('sparse', 200 * 2 ** 20)); put('end'); attempt(lambda: os.truncate('end', 2 ** 40))",
  'a large file': "put('large', os.urandom(2 ** 20) * 20)",
  '21,000 files':
    "attempt(lambda: os.mkdir('many'), *[(lambda n: lambda: os.close(os.open('many/%d' % n, os.O_CREAT | os.O_WRONLY)))(n) for n in range(21000)])",
  'a million files': "sh('for d in $(seq 200); do mkdir m$d; (cd m$d; seq 5000 | xargs touch); done')",
  '30,000 directories':
    "attempt(*[(lambda n: lambda: os.makedirs('dirs/%d/%d' % (n % 100, n)))(n) for n in range(30000)])",
  '700 repositories': "sh('git init -q one; for n in $(seq 700); do cp -r one r$n; done')",
  'all of the disk':
    "sh('head -c 600000000 /dev/zero >/workspace/full; head -c 600000000 /dev/zero >/tmp/full2; head -c 300000000 /dev/zero >full3')",
};

/** The directories in which an act leaves its files. The base ignores one of them. */
const places = ['/workspace', '/workspace/src', '/workspace/ignored', '/tmp/place', '$HOME/place'] as const;

/** Returns a script that does acts, each in a directory. */
export function scriptOf(deeds: readonly Deed[]): string {
  const steps = deeds.map(
    ({ name, place }, index) => `mkdir -p "${place}" 2>/dev/null; cd "${place}" 2>/dev/null || cd /tmp
python3 - <<'END${index}'\n${prelude}\n${acts[name] ?? slowActs[name]}\nEND${index}`,
  );
  return `${steps.join('\n')}\ntrue\n`;
}

export interface Deed {
  readonly name: string;
  readonly place: string;
}

/** All acts that a change of this repository has time for, in one directory. */
export const allIn = (place: string): readonly Deed[] => Object.keys(acts).map((name) => ({ name, place }));

/** Returns random numbers below a bound, the same for one seed (mulberry32). */
function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const handSize = 10;

/** Deals all acts into hands, in an order and in places that depend on the seed. */
function handsOf(seed: number, names: readonly string[]): readonly (readonly Deed[])[] {
  const random = seeded(seed);
  const left = [...names];
  const dealt: Deed[] = [];
  while (left.length > 0) {
    const [name = ''] = left.splice(random(left.length), 1);
    dealt.push({ name, place: places[random(places.length)] ?? '/workspace' });
  }
  const hands = Math.ceil(dealt.length / handSize);
  return Array.from({ length: hands }, (_, hand) => dealt.slice(hand * handSize, (hand + 1) * handSize));
}

/** The number of seeds of a long test, with the acts that take long; by hand: TEMPER_TEST_TREES=20. */
const seeds = Number(process.env.TEMPER_TEST_TREES ?? 0);
const ways = ['fresh', 'snapshot', 'same'] as const;
type Way = (typeof ways)[number];

const taskOf = (way: Way, grading = ''): HarborTask =>
  readHarborTask(
    treeOf({
      'task.toml': `[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\n[grading]\nsandbox = "${way}"\nprotected = ["golden/"]\n${grading}`,
      'instruction.md': 'Write 5.\n',
      'environment/workspace/a': 'a\n',
      'environment/workspace/src/answer': '4\n',
      'environment/workspace/golden/answer': '5\n',
      'environment/workspace/.gitignore': 'ignored/\n',
      'tests/test.sh':
        'echo 0 >/logs/verifier/reward.txt; cmp -s src/answer golden/answer && [ "$(cat golden/answer)" = 5 ] && echo 1 >/logs/verifier/reward.txt\n',
    }),
  );
const cheats = 'echo 4 >/workspace/golden/answer\n';

/** Checks, in real sandboxes of a kind, that an agent is scored whatever tree it leaves. The seeded choice of trees is in the titles. */
export function hostileTreesSuite(kind: SandboxKind, open?: OpenProvider): void {
  describe(`the tree that an agent leaves in a ${kind} sandbox`, { concurrency: 2 }, () => {
    let pipeline: Pipeline;
    before(async () => {
      pipeline = await createPipeline(kind, open);
    });
    after(async () => {
      await pipeline?.[Symbol.asyncDispose]();
    });

    const graded = (way: Way, script: string): Promise<Pick<Evaluated, 'verdict' | 'flags'>> => {
      const run = { fresh: pipeline.run, snapshot: pipeline.runSnapshot, same: pipeline.runInPlace }[way];
      return run(taskOf(way), { script });
    };
    const scored = async (way: Way, script: string): Promise<Verdict> =>
      way === 'same' ? (await graded(way, script)).verdict : pipeline.evaluate(taskOf(way), { script });

    const chosen = Array.from({ length: Math.max(1, seeds) }, (_, index) => index + 1);
    for (const seed of chosen) {
      const names = [...Object.keys(acts), ...(seeds > 0 ? Object.keys(slowActs) : [])];
      for (const [index, hand] of handsOf(seed, names).entries()) {
        const way = ways[(seed + index) % ways.length] ?? 'fresh';
        it(`is scored by ${way}, seed ${seed}: ${hand.map(({ name, place }) => `${name} in ${place}`).join(', ')}`, async () => {
          const verdict = await scored(way, scriptOf(hand));
          assert.ok(['graded', 'patch-failed', 'no-reward'].includes(verdict.kind), JSON.stringify(verdict));
        });
      }
    }

    for (const way of ways) {
      it(`hides no change of a protected file behind directories that cannot be read, by ${way}`, async () => {
        const left = scriptOf([{ name: deep, place: '/workspace/src' }]);
        const { verdict, flags } = await graded(way, cheats + left);
        assert.equal(verdict.value ?? 0, 0, JSON.stringify(verdict));
        assert.ok(flags.includes('unreadable') || flags.includes('tests'), flags.join());
      });
    }

    it('may change while it is captured, where the processes of the agent are kept', async () => {
      const churn = `setsid sh -c 'while :; do mkdir -p v/w; seq 50 | (cd v/w && xargs touch); rm -rf v; done' </dev/null >/dev/null 2>&1 &
until [ -e v ]; do :; done`;
      const task = taskOf('same', 'keep_processes = true\n');
      const { verdict } = await pipeline.runInPlace(task, { script: churn });
      assert.equal(verdict.value ?? 0, 0, JSON.stringify(verdict));
    });
  });
}
