import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, it } from 'node:test';
import Docker from 'dockerode';
import { createRuntime } from '../../../../../infra/agents/runtime.ts';
import { createEgressPlaces } from '../../../../../infra/egress/places.ts';
import { builtImageName, readBuildContext } from '../../../../../infra/harbor/build-context.ts';
import { createBuildProxies } from '../../../../../infra/images/build-proxy.ts';
import { cacheDirectory } from '../../../../../infra/process/cache.mjs';
import { createDockerProvider } from '../../../../../infra/sandbox/docker/provider.ts';
import { BuildFailure } from '../../../../../infra/sandbox/failure.ts';
import type { NetworkMode, NetworkPolicy } from '../../../../../workflows/contracts/network.ts';
import { listenInNetwork, loopbackNetwork, ownAddress } from '../../../../helpers/egress/loopback-network.ts';
import { pruneBuilt } from '../../../../helpers/sandbox/built-images.ts';
import { treeOf } from '../../../../helpers/sandbox/workspaces.ts';

const stack = `build-network-${process.pid}`;
const base = 'temper-tasks:bookworm';
const docker = new Docker();
const server = createServer((request, response) => response.end(`content of ${request.headers.host?.split(':')[0]}`));
const made = new Set<string>();
const signal = new AbortController().signal;
let root: string;
let port: number;

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'temper-build-'));
  port = await listenInNetwork(server);
});
after(async () => {
  server.close();
  for (const image of made) await docker.getImage(image).remove({ force: true });
  await pruneBuilt(docker, stack);
  await rm(root, { recursive: true, force: true });
});

/** Fetches a host, and fails as package managers do if it can't. */
const fetching = (host: string): string =>
  `python3 -c "import urllib.request as u; print(u.urlopen('http://${host}:${port}/', timeout=20).read().decode())"`;

async function build(commands: string, cap: NetworkMode, policy: Partial<NetworkPolicy> = {}, from = base) {
  const buildProxy = createBuildProxies({
    cap,
    outside: loopbackNetwork({ 'mirror.test': [ownAddress], 'inner.test': ['10.0.0.1'], 'own.test': ['127.0.0.1'] }),
    places: createEgressPlaces(join(root, 'egress')),
    runtime: createRuntime({ cacheDir: cacheDirectory(process.env) }).prepare,
  });
  const provider = createDockerProvider({ stack, buildProxy });
  const context = readBuildContext(treeOf({ Dockerfile: `FROM ${from}\nENV TEST=${stack}\n${commands}\n` }), 120);
  const network: NetworkPolicy = { mode: 'public', hosts: [], ports: [port], ...policy };
  const source = { ...context, network };
  const image = await provider.prepare(
    { task: 'some-task', image: builtImageName(source), source },
    () => undefined,
    signal,
  );
  made.add(image);
  return docker.getImage(image).inspect();
}

async function failureOf(commands: string, cap: NetworkMode, policy: Partial<NetworkPolicy> = {}): Promise<string> {
  const error: unknown = await build(commands, cap, policy).then(
    () => null,
    (error: unknown) => error,
  );
  assert.ok(error instanceof BuildFailure, `expected a failed build, got ${error}`);
  return error.message;
}

const listed: Partial<NetworkPolicy> = { mode: 'allowlist', hosts: ['mirror.test'] };

it('the commands of a build reach what the policy and the operator allow, without a network device', async () => {
  const devices = `test "$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ')" = lo`;
  const commands = `RUN ${fetching('mirror.test')} | grep 'content of mirror.test' && ${devices}`;
  const { Config } = await build(commands, 'public');
  assert.deepEqual(
    Config.Env.filter((one) => /proxy/i.test(one)),
    [],
  );
  await build(`RUN true\n${commands}`, 'allowlist', listed);
  assert.deepEqual(await readdir(join(root, 'egress')), []);
  assert.deepEqual(await docker.listContainers({ all: true, filters: { label: [`temper.stack=${stack}`] } }), []);
});

it('a build that needs more than the operator allows fails, and the failure names the setting', async () => {
  const commands = `RUN echo 1; ${fetching('mirror.test')}`;
  assert.match(await failureOf(commands, 'none', listed), /no network; set TEMPER_NETWORK=allowlist if they need one/);
  assert.match(await failureOf(commands, 'allowlist'), /no network; set TEMPER_NETWORK=public if they need one/);
});

it('a build never reaches other hosts than those of its list, nor private addresses, and its failure says so', async () => {
  const refused = await failureOf(`RUN echo 2; ${fetching('other.test')}`, 'public', listed);
  assert.match(refused, new RegExp(`its network refused other\\.test:${port} host-refused`));
  for (const host of ['inner.test', 'own.test']) {
    const closed = await failureOf(`RUN echo 3; ${fetching(host)}`, 'public');
    assert.match(closed, new RegExp(`its network refused ${host}:${port} address-refused`));
  }
});

it('a build from an image without a shell needs no network', async () => {
  const shellless = `${stack}-shellless:latest`;
  const tar = Readable.from([Buffer.alloc(1024)]);
  await text(await docker.importImage(tar, { repo: `${stack}-shellless`, tag: 'latest' }));
  made.add(shellless);
  await build('COPY Dockerfile /', 'public', {}, shellless);
});
