import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, it } from 'node:test';
import { parseDataSetAddress } from '../../../../infra/data-sets/address.ts';
import { useName } from '../../../../infra/data-sets/uses.ts';
import { createDataSetFixture, failure, packed } from '../../../helpers/tasks/data-set-fixture.ts';

const taskFiles: Readonly<Record<string, string>> = {
  'task.toml': '[environment]\ndocker_image = "x"\n',
  'instruction.md': 'Do it.\n',
  'tests/test.sh': 'echo 1 > /logs/verifier/reward.txt\n',
};
const treeOf = (tasks: readonly string[], others: Readonly<Record<string, string>>) => ({
  ...Object.fromEntries(
    tasks.flatMap((task) => Object.entries(taskFiles).map(([path, text]) => [`${task}/${path}`, text] as const)),
  ),
  ...others,
});
const onHub = treeOf(['one', 'extra/two'], { 'README.md': 'read me', 'results/run.log': 'long' });
const sha = '0123456789abcdef0123456789abcdef01234567';

let home: string;
let server: Server;
let base: string;
let asked: string[] = [];
before(async () => {
  home = await mkdtemp(join(tmpdir(), 'temper-harbor-sets-'));
  server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', base);
    asked.push(pathname);
    if (pathname.startsWith('/git/')) {
      const bytes = await readFile(join(home, pathname)).catch(() => null);
      return response.writeHead(bytes === null ? 404 : 200).end(bytes ?? '');
    }
    if (/^\/api\/datasets\/harborframework\/terminal-bench-2\.0\/revision\/(main|refs%2Fpr%2F1)$/.test(pathname)) {
      const siblings = Object.entries(onHub).map(([rfilename, text]) => ({ rfilename, ...checksums(text) }));
      return response.end(JSON.stringify({ sha, siblings }));
    }
    const path = pathname.split(`/datasets/harborframework/terminal-bench-2.0/resolve/${sha}/`)[1] ?? '';
    const text = onHub[path];
    return response.writeHead(text === undefined ? 404 : 200).end(text ?? '');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  asked = [];
});
after(async () => {
  server.close();
  await rm(home, { recursive: true });
});

function checksums(text: string) {
  const size = Buffer.byteLength(text);
  return { size, blobId: createHash('sha1').update(`blob ${size}\0${text}`).digest('hex') };
}

it('reads Terminal-Bench 2 by its name: the task directories of a hub, once per host, and nothing beside them', async () => {
  await using fixture = await createDataSetFixture();
  const set = 'harbor:terminal-bench@2.0';
  await assert.rejects(fixture.tasks.list(set), failure('UnknownTask', /not in this host's cache/));
  const online = fixture.tasksWith({ offline: false, hub: base });
  assert.deepEqual(await online.list(set), [`${set}#two`, `${set}#one`]);
  assert.equal(asked.length, 1 + 2 * Object.keys(taskFiles).length, asked.join('\n'));
  const { task, instruction } = await packed(fixture.tasks, `${set}#two`);
  assert.deepEqual([task.id, task.user, instruction], ['two', undefined, 'Do it.\n']);
  const asRoot = `${set.replace('terminal-bench@2.0', 'hub:harborframework/terminal-bench-2.0/extra')}?user=root#two`;
  assert.equal((await packed(fixture.tasks, asRoot)).task.user, 'root');
  const proposed = 'harbor:hub:harborframework/terminal-bench-2.0@refs%2Fpr%2F1/extra';
  assert.deepEqual(await online.list(proposed), [`${proposed}#two`]);
  await assert.rejects(
    fixture.tasks.list('harbor:terminal-bench@9'),
    failure('UnknownTask', /expected .* or one of terminal-bench@2\.0, terminal-bench@2\.1/),
  );
});

async function git(repository: string, ...args: readonly string[]): Promise<string> {
  const settings = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'init.defaultBranch=main'];
  return execFileSync('git', ['-C', repository, ...settings, ...args], { encoding: 'utf8' }).trim();
}

/** Commits files to a new or an existing repository, publishes it for git's plain HTTP, and returns the commit. */
async function publish(name: string, files: Readonly<Record<string, string>>, links: readonly [string, string][] = []) {
  const work = join(home, 'work', name);
  await mkdir(work, { recursive: true });
  await git(work, 'init', '-q');
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(work, path)), { recursive: true });
    await writeFile(join(work, path), text, { mode: path.endsWith('.sh') ? 0o755 : 0o644 });
  }
  for (const [path, target] of links) await symlink(target, join(work, path));
  await git(work, 'add', '-A');
  await git(work, 'commit', '-qm', 'tasks');
  const bare = join(home, 'git', `${name}.git`);
  await mkdir(bare, { recursive: true });
  await git(bare, 'init', '-q', '--bare');
  await git(work, 'push', '-q', bare, 'main');
  await git(bare, 'update-server-info');
  return git(work, 'rev-parse', 'HEAD');
}

it('reads the tasks of a git repository at a revision, once per host, and then offline', async () => {
  await using fixture = await createDataSetFixture();
  const files = treeOf(['tasks/one', 'tasks/hard/two'], { '.gitattributes': 'tests/** export-ignore\n' });
  const first = await publish('set', files, [['tasks/one/solution.md', 'instruction.md']]);
  const set = `harbor:git+${base}/git/set.git`;
  await assert.rejects(fixture.tasks.list(set), failure('UnknownTask', /set\.git: not in this host's cache/));
  const online = fixture.tasksWith({ offline: false });
  assert.deepEqual(await online.list(`${set}@main/tasks`), [`${set}@main/tasks#two`, `${set}@main/tasks#one`]);
  const second = await publish('set', treeOf(['tasks/three'], {}));
  const before = asked.length;
  for (const known of [set, `${set}@main`, `${set}@${first}`, `${set}@${first.slice(0, 10)}/tasks`])
    assert.deepEqual(await fixture.tasks.list(known), [`${known}#two`, `${known}#one`]);
  assert.equal(asked.length, before);
  const { tests } = await packed(fixture.tasks, `${set}@main#one`);
  assert.deepEqual([...tests.keys()], ['test.sh']);
  await assert.rejects(fixture.tasks.list(`${set}@${second}`), failure('UnknownTask', /expected a branch, a tag or a/));
  // A commit that is newer than the clone is fetched.
  assert.equal((await online.list(`${set}@${second}`)).length, 3);
  // The branch of the clone stands for the same commit as before.
  assert.equal((await online.list(`${set}@main/tasks`)).length, 2);
  await git(join(home, 'git', 'set.git'), 'branch', 'feature/hard', second);
  await git(join(home, 'git', 'set.git'), 'update-server-info');
  assert.equal((await online.list(`${set}@feature%2Fhard/tasks`)).length, 3);
  await assert.rejects(
    online.list(`${set}@feature%2Feasy`),
    failure('UnknownTask', /@feature%2Feasy: expected a branch/),
  );
  const name = useName(parseDataSetAddress(set) ?? assert.fail());
  const uses = await readFile(join(fixture.root, '../cache/data-sets/uses', name), 'utf8');
  assert.match(uses, /^repositories\/[0-9a-f]{24}\.git\nunpacked\/[0-9a-f]{24}\n$/);
});

it('reads rows of a git repository, and follows no link out of it', async () => {
  await using fixture = await createDataSetFixture();
  await fixture.write('secret/task.toml', '');
  await publish('odd', { 'rows.jsonl': '{"instance_id": "a"}\n' }, [['out', join(fixture.root, 'secret')]]);
  const online = fixture.tasksWith({ offline: false });
  const at = `git+${base}/git/odd.git@main`;
  assert.deepEqual(await online.list(`swe-bench:${at}`), [`swe-bench:${at}#a`]);
  assert.deepEqual(await online.list(`swe-bench:${at}/rows.jsonl`), [`swe-bench:${at}/rows.jsonl#a`]);
  for (const path of ['out', '../..', 'none']) {
    const outside = failure('UnknownTask', /expected a file or directory .* in commit [0-9a-f]{40}, got/);
    await assert.rejects(online.list(`harbor:${at}/${path}`), outside);
  }
  await assert.rejects(
    online.list(`harbor:${at}`),
    failure('UnknownTask', /expected directories that contain task\.toml/),
  );
  const missing = online.list(`harbor:git+${base}/git/none.git`);
  await assert.rejects(missing, failure('UnknownTask', /none\.git: expected a git repository, got/));
});
