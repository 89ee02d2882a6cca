import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import Docker from 'dockerode';
import { builtTags } from '../../helpers/sandbox/built-images.ts';
import { startRegistry, type TestRegistry } from '../../helpers/sandbox/registry.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';
import { until } from '../../helpers/until.ts';

const program = join(import.meta.dirname, '../../../workers/cli.ts');
const docker = new Docker();
/** Makes the builds of this test differ from those of other tests. */
const mark = `prewarm-${process.pid}`;
const named = (image: string): string => `version = "1.0"\n[environment]\ndocker_image = "${image}"\n`;

describe('temper tasks prewarm', () => {
  let registry: TestRegistry;
  let home: string;
  let root: string;
  const pulled: string[] = [];
  before(async () => {
    registry = await startRegistry();
  });
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-prewarm-'));
    root = join(home, 'tasks');
  });
  afterEach(() => rm(home, { recursive: true, force: true }));
  after(async () => {
    for (const tag of await builtTags(docker, mark)) await docker.getImage(tag).remove();
    const there = new Set((await docker.listImages()).flatMap(({ RepoTags }) => RepoTags ?? []));
    for (const image of pulled) if (there.has(image)) await docker.getImage(image).remove({ force: true });
    await registry?.close();
  });

  const published = async (name: string, bytes = 1000): Promise<string> => {
    const image = await registry.add(`${mark}/${name}:1`, [bytes]);
    pulled.push(image);
    return image;
  };

  function begin(...args: readonly string[]) {
    const env = { PATH: process.env.PATH, HOME: home, TEMPER_HOME: home };
    const child = spawn(process.execPath, [program, 'tasks', 'prewarm', root, ...args], { env });
    const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    return { child, ended: ended.then(([stdout, stderr, [code]]) => ({ code, stdout, stderr })) };
  }

  it('pulls or builds each image once, and finds all of them present the next time', async () => {
    const image = await published('shared');
    const dockerfile = `FROM temper-tasks:bookworm\nENV TEST=${mark}\nRUN true\n`;
    await writeHarborTask(root, 'a', { toml: named(image) });
    await writeHarborTask(root, 'b', { toml: named(image) });
    await writeHarborTask(root, 'c', { toml: 'version = "1.0"\n', workspace: { '../Dockerfile': dockerfile } });
    const first = await begin('--json').ended;
    assert.equal(first.code, 0, first.stderr);
    const states = (stdout: string) =>
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .sort((one, other) => one.task.localeCompare(other.task))
        .map(({ state }) => state);
    assert.deepEqual(states(first.stdout), ['pulled', 'built']);
    await docker.getImage(image).inspect();
    // Both are recorded as temper's own, so that the reaper may remove them when the disk is full.
    assert.equal((await readdir(join(home, 'images'))).length, 2);
    assert.deepEqual(states((await begin('--json').ended).stdout), ['there', 'there']);
  });

  it('prepares the image of the tests, too, and those of tasks that are too large for the host', async () => {
    const toml =
      'version = "1.0"\n[environment]\ndocker_image = "temper-tasks:bookworm"\n[verifier]\nenvironment_mode = "separate"\n';
    const dockerfile = `FROM temper-tasks:bookworm\nENV TEST=${mark}\nRUN true\nCOPY . /tests\n`;
    await writeHarborTask(root, 'judged', { toml, workspace: {}, others: { 'tests/Dockerfile': dockerfile } });
    await writeHarborTask(root, 'wide', { toml: `${named('temper-tasks:bookworm')}cpus = 1024\n` });
    const { code, stdout, stderr } = await begin('--json').ended;
    assert.equal(code, 0, stderr);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(lines.map(({ task, state }) => [task, state]).sort(), [
      ['judged', 'built'],
      ['wide', 'there'],
    ]);
  });

  it('lists missing images and broken tasks at the end, and prepares the other images', async () => {
    const image = await published('good');
    await writeHarborTask(root, 'a', { toml: named(`${registry.address}/${mark}/absent:1`) });
    await writeHarborTask(root, 'b', { toml: 'nonsense' });
    await writeHarborTask(root, 'c', { toml: named(image) });
    const { code, stdout, stderr } = await begin().ended;
    assert.equal(code, 1);
    assert.match(stdout, /absent:1 +a +MissingImage: .*manifest unknown/);
    assert.match(stdout, /^- +b +MalformedTask: .*task\.toml/m);
    assert.match(stdout, /\n\n3 images: 0 already present, 1 pulled, 0 built, 2 failed\n$/);
    assert.match(stderr, /2 of 3 images could not be prepared/);
    await docker.getImage(image).inspect();
  });

  it('prepares only the part of the set that --offset and --count select', async () => {
    for (const name of ['a', 'b', 'c'])
      await writeHarborTask(root, name, { toml: named(await published(`part-${name}`)) });
    const { code, stdout } = await begin('--offset', '1', '--count', '1', '--json').ended;
    assert.deepEqual([code, stdout.trim().split('\n').length, JSON.parse(stdout).task], [0, 1, 'b']);
  });

  it('stops at Ctrl-C and keeps the images that are finished', async () => {
    const [good, slow] = [await published('early'), await published('late', 4_000_000)];
    await writeHarborTask(root, 'a', { toml: named(good) });
    await writeHarborTask(root, 'b', { toml: named(slow) });
    // The daemon retries an interrupted download after ever longer delays.
    registry.cut(`${mark}/late/blobs`, 1000, 1000);
    const { child, ended } = begin('--json');
    await until(async () => registry.requests.some((request) => request.includes(`${mark}/late/blobs`)));
    await until(async () =>
      docker
        .getImage(good)
        .inspect()
        .then(
          () => true,
          () => false,
        ),
    );
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    assert.equal(code, 130, stderr);
    assert.match(stderr, /interrupted after \d images?; run the same command again/);
    await assert.rejects(docker.getImage(slow).inspect(), { statusCode: 404 });
  });
});
