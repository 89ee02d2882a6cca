import assert from 'node:assert/strict';
import { readdirSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import Docker from 'dockerode';
import { builtImageName, readBuildContext } from '../../../../../infra/harbor/build-context.ts';
import type { RegistryAccounts } from '../../../../../infra/sandbox/docker/images/registry-accounts.ts';
import { createImageUses } from '../../../../../infra/sandbox/docker/images/uses.ts';
import { createDockerProvider } from '../../../../../infra/sandbox/docker/provider.ts';
import type { DockerSettings } from '../../../../../infra/sandbox/docker/settings.ts';
import { BuildFailure } from '../../../../../infra/sandbox/failure.ts';
import type { ImageProgress } from '../../../../../infra/sandbox/image.ts';
import { pruneBuilt } from '../../../../helpers/sandbox/built-images.ts';
import { startRegistry, type TestRegistry } from '../../../../helpers/sandbox/registry.ts';
import { treeOf } from '../../../../helpers/sandbox/workspaces.ts';
import { until } from '../../../../helpers/until.ts';

const base = 'temper-tasks:bookworm';
const stack = `images-${process.pid}`;
const docker = new Docker();
/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(600_000);
const made = new Set<string>();
const open = (limits: Partial<DockerSettings> = {}) => createDockerProvider({ stack, ...limits });
const provider = open();

/** A build that shares no cached steps with other tests. */
const request = (lines: string, { timeoutSec = 120, files = {} } = {}) => {
  const dockerfile = `FROM ${base}\nENV TEST=${stack}\n${lines}\n`;
  const source = readBuildContext(treeOf({ Dockerfile: dockerfile, ...files }), timeoutSec);
  return { task: 'some-task', image: builtImageName(source), source };
};
type Request = Parameters<typeof provider.prepare>[0];
async function prepare(asked: Request, from = provider, ending = limit()) {
  const seen: ImageProgress[] = [];
  const image = await from.prepare(asked, (progress) => seen.push(progress), ending);
  made.add(image);
  return { image, seen };
}
const runningCommands = async (): Promise<number> =>
  (await docker.listContainers({ filters: { label: [`temper.built-by=${stack}`] } })).length;

after(async () => {
  for (const image of made) await docker.getImage(image).remove({ force: true });
  await pruneBuilt(docker, stack);
});

describe('an image from a Dockerfile', () => {
  it('is built once for concurrent and later requests, and reports its progress', async () => {
    const asked = request('COPY tool /bin/tool\nRUN sleep 1; tool >/made', {
      files: { tool: '#!/bin/sh\necho made by a tool\n' },
    });
    for (const entry of asked.source.files.values()) Object.assign(entry, { mode: 0o755 });
    const both = await Promise.all([prepare(asked), prepare(asked)]);
    const [one, two] = both.map(({ image }) => image);
    assert.equal(one, two);
    assert.match(one ?? '', /^temper-built:[0-9a-f]{40}-[0-9a-f]{12}$/);
    for (const { seen } of both) {
      const steps = seen.flatMap(({ step }) => step ?? []);
      assert.equal(steps.at(-1), '5/5 RUN sleep 1; tool >/made');
    }
    const { Id, Config } = await docker.getImage(one ?? '').inspect();
    assert.equal(Config.Labels['temper.built-by'], stack);
    const again = await prepare(asked, open());
    assert.deepEqual([again.image, again.seen], [one, []]);
    assert.equal((await docker.getImage(one ?? '').inspect()).Id, Id);
  });

  it('is a different one when its base image changes', async () => {
    const name = `${stack}-base:latest`;
    const { image: first } = await prepare(request('RUN echo 1'));
    const lines = (from: string) => {
      const source = readBuildContext(treeOf({ Dockerfile: `FROM ${from}\nRUN echo 2\n` }), 60);
      return { task: 'some-task', image: 'temper-built:same', source };
    };
    await docker.getImage(base).tag({ repo: `${stack}-base`, tag: 'latest' });
    made.add(name);
    const { image: old } = await prepare(lines(name));
    const before = await provider.imageId(name);
    await docker.getImage(first).tag({ repo: `${stack}-base`, tag: 'latest' });
    const { image: later } = await prepare(lines(name));
    assert.notEqual(old, later);
    assert.notEqual(await provider.imageId(name), before, 'expected another id for the same name');
    await assert.rejects(provider.imageId('temper-nowhere:none'), { type: 'MissingImage' });
  });

  it('that fails to build reports its file, its error and its output', async () => {
    const failing = prepare(request('RUN echo no space left on device; seq 400000; echo the reason >&2; exit 3'));
    await assert.rejects(failing, (error) => {
      assert.ok(error instanceof BuildFailure, String(error));
      assert.match(
        error.message,
        /^could not build the image of task some-task .*no network; set TEMPER_NETWORK=public if they need one/,
      );
      assert.match(error.message, /returned a non-zero code: 3; last output: .*the reason/s);
      assert.ok(error.log.length < 2 * 2 ** 20, `${error.log.length} bytes`);
      assert.match(String(error.log), /^Step 1\/4[\s\S]*output left out[\s\S]*399999\n[\s\S]*the reason/);
      return true;
    });
    await assert.rejects(prepare(request('NONSENSE')), { type: 'BuildFailed', message: /unknown instruction/i });
    await assert.rejects(prepare(request('COPY absent /')), { type: 'BuildFailed', message: /absent/ });
  });

  it('is built with limited time and memory and without network, and leaves nothing running', async () => {
    let said = '';
    // A busy machine may take long until the command runs.
    for (const timeoutSec of [5, 20, 80]) {
      const error: unknown = await prepare(request('RUN echo begun; sleep 300', { timeoutSec })).catch((one) => one);
      assert.ok(error instanceof BuildFailure && error.message.includes(`longer than ${timeoutSec} s`), String(error));
      said = error.message;
      await until(async () => (await runningCommands()) === 0);
      if (said.includes('begun')) break;
    }
    assert.match(said, /last output: .*begun/s);
    const memory = 'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null';
    const bounds = `RUN test "$(ls /sys/class/net | tr '\\n' ' ')" = 'lo ' && test "$(${memory})" = ${4 * 2 ** 30}`;
    await prepare(request(bounds));
  });

  it('is no longer built when its last caller has given up', async () => {
    const waiting = new AbortController();
    const asked = request('RUN echo endless; sleep 300');
    const both = [prepare(asked, provider, waiting.signal), prepare(asked, provider, waiting.signal)];
    await until(async () => (await runningCommands()) === 1);
    waiting.abort(new Error('given up'));
    for (const one of both) await assert.rejects(one, /given up/);
    await until(async () => (await runningCommands()) === 0);
  });

  it('is built with limited concurrency, and not at all when builds are off', async (t) => {
    const narrow = open({ builds: 1 });
    const filters = { event: ['start', 'die'], label: [`temper.built-by=${stack}`] };
    const events = await docker.getEvents({ filters });
    assert.ok(events instanceof Readable);
    t.after(() => events.destroy());
    const [started, seen]: [Set<string>, string[]] = [new Set(), []];
    createInterface(events).on('line', (line) => {
      const { Action: action, Actor: actor } = JSON.parse(line);
      if (action === 'start') started.add(actor.ID);
      // The end of an earlier build may come late.
      if (started.has(actor.ID)) seen.push(action);
    });
    await Promise.all([1, 2, 3].map((number) => prepare(request(`RUN sleep 1 # ${number}`), narrow)));
    await until(() => seen.length >= 6);
    assert.deepEqual(seen, ['start', 'die', 'start', 'die', 'start', 'die']);
    const refusal = await open({ builds: 0 }).supports({
      task: 't',
      image: 'i',
      imageFrom: 'dockerfile',
      paths: [],
      filesInImage: true,
    });
    assert.match(refusal?.message ?? '', /TEMPER_BUILDS is 0/);
  });

  it('is rejected if its base image has triggers', async () => {
    const trigger = await docker.createContainer({ Image: base, Cmd: ['true'] });
    await trigger.commit({ repo: `${stack}-trigger`, tag: 'latest', changes: 'ONBUILD ADD http://127.0.0.1/x /x' });
    await trigger.remove();
    made.add(`${stack}-trigger:latest`);
    const source = readBuildContext(treeOf({ Dockerfile: `FROM ${stack}-trigger:latest\nRUN true\n` }), 60);
    const asked = prepare({ task: 'some-task', image: 'temper-built:trigger', source });
    await assert.rejects(asked, { type: 'UnsupportedTask', message: /ONBUILD/ });
  });
});

describe('an image from a registry', () => {
  let registry: TestRegistry;
  before(async () => {
    registry = await startRegistry();
  });
  after(() => registry.close());
  const named = (image: string): Request => ({ task: 'some-task', image, source: 'registry' });

  it('is pulled once for concurrent and later requests, and reports its progress', async () => {
    const image = await registry.add('one:1', [2_000_000, 30_000]);
    const both = await Promise.all([prepare(named(image)), prepare(named(image))]);
    assert.deepEqual(
      both.map((one) => one.image),
      [image, image],
    );
    for (const { seen } of both)
      assert.deepEqual(
        seen.slice(-2).map(({ doing }) => doing),
        ['pulling', 'ready'],
      );
    assert.equal((await docker.getImage(image).inspect()).RootFS.Layers?.length, 2);
    const asked = registry.requests.length;
    assert.deepEqual((await prepare(named(image), open())).seen, []);
    assert.equal(registry.requests.length, asked);
  });

  it('is pulled in spite of an interrupted connection', async () => {
    const image = await registry.add('cut:1', [3_000_000]);
    registry.cut('/cut/blobs/', 1, 0);
    registry.cut('/cut/blobs/', 1, 1_000_000);
    await prepare(named(image));
    assert.equal((await docker.getImage(image).inspect()).RootFS.Layers?.length, 1);
  });

  it('can be requested again after the registry hung up, and is then pulled', async () => {
    const image = await registry.add('away:1', [1_000]);
    registry.cut('/away/manifests/', 20, 0);
    await assert.rejects(prepare(named(image)), { type: 'ImageUnavailable', message: new RegExp(image) });
    await until(async () => {
      try {
        await prepare(named(image));
        return true;
      } catch {
        return false;
      }
    });
  });

  it('is recorded even if another process that found it missing removes the record meanwhile', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'temper-uses-'));
    try {
      const uses = createImageUses(directory);
      const image = await registry.add('forgotten:1', [1_000]);
      const forgets: string[] = [];
      const report = ({ doing }: ImageProgress): void => {
        if (doing === 'ready') return;
        for (const name of readdirSync(directory)) {
          forgets.push(name);
          rmSync(join(directory, name));
        }
      };
      made.add(image);
      await createDockerProvider({ stack, uses }).prepare(named(image), report, limit());
      assert.equal(forgets.length, 1);
      assert.deepEqual(
        (await uses.list()).map((use) => use.image),
        [image],
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('is missing if its registry lacks it, and unavailable if its registry does not answer', async () => {
    const missing = { type: 'MissingImage', message: /its registry answered: .*manifest/ };
    await assert.rejects(prepare(named(`${registry.address}/absent:1`)), missing);
    await assert.rejects(prepare(named('127.0.0.1:9/closed:1')), { type: 'ImageUnavailable' });
  });

  it('is not pulled when pulls are off, and makes the host unsuitable for its task', async () => {
    const image = await registry.add('off:1', [1_000]);
    const closed = open({ pulls: 0 });
    await assert.rejects(prepare(named(image), closed), { type: 'MissingImage' });
    const needs = { task: 't', image, imageFrom: 'registry' as const, paths: [], filesInImage: true };
    assert.equal((await closed.supports(needs))?.type, 'MissingImage');
    assert.equal(await provider.supports(needs), undefined);
  });

  it('is pulled with the account for its registry if it is private, and missing without it', async () => {
    const secret = `s3cret-${process.pid}`;
    const closed = await startRegistry(`user:${secret}`);
    try {
      const image = await closed.add('private:1', [1_000]);
      const as = (username: string, password: string): RegistryAccounts => {
        return async () => ({ auth: { username, password, serveraddress: closed.address } });
      };
      const pullAs = (accounts: RegistryAccounts) => prepare(named(image), createDockerProvider({ stack, accounts }));
      await assert.rejects(prepare(named(image)), {
        type: 'MissingImage',
        message: /its registry answered: .*basic auth/,
      });
      await assert.rejects(pullAs(as('user', `not-${secret}`)), (error: Error) => {
        assert.match(error.message, /unauthorized|authentication|401/i);
        assert.doesNotMatch(error.message, new RegExp(secret));
        return true;
      });
      const unread: RegistryAccounts = async () => ({ problem: 'it is not readable' });
      await assert.rejects(pullAs(unread), /pulled without an account: it is not readable/);
      await pullAs(as('user', secret));
      await docker.getImage(image).inspect();
    } finally {
      await closed.close();
    }
  });

  it('can be the base image of a Dockerfile', async () => {
    const image = await registry.add('base:1', [1_000]);
    const source = readBuildContext(treeOf({ Dockerfile: `FROM ${image}\nCOPY a /a\n`, a: 'a' }), 60);
    await prepare({ task: 'some-task', image: 'temper-built:pulled-base', source });
    made.add(image);
  });
});
