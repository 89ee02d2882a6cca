import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { access, constants, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { homedir, tmpdir } from 'node:os';
import { delimiter, extname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { networkVariables } from '../../../infra/agents/network-variables.ts';
import { createCertificate } from '../../helpers/certificate.ts';
import {
  listenInNetwork,
  loopbackNetwork,
  ownAddress,
  type ServedProxy,
  serveProxy,
} from '../../helpers/egress/loopback-network.ts';

const run = promisify(execFile);
const host = 'packages.test';

/** A client of package archives, and the settings that make it ask the server of this test. */
interface Client {
  readonly program: string;
  /** The command line, given the server's address and an empty directory of this client. */
  readonly command: (url: string, home: string) => readonly string[];
  /** Further variables, given the same and the file of the server's certificate. */
  readonly env?: (url: string, home: string, certificate: string) => Readonly<Record<string, string>>;
  /** Files that are written into the client's directory before. */
  readonly files?: (url: string) => Readonly<Record<string, string>>;
  /** Text that shows in the client's output if it was served. */
  readonly prints: RegExp;
}

/** Clients read the address of their proxy from the variables alone: no setting here names it. */
const clients: Readonly<Record<string, Client>> = {
  curl: {
    program: 'curl',
    command: (url) => ['-sS', `${url}/hello`],
    env: (_url, _home, certificate) => ({ CURL_CA_BUNDLE: certificate }),
    prints: /^hello$/m,
  },
  wget: {
    program: 'wget',
    command: (url, home) => ['-nv', '-O', '-', `--ca-certificate=${home}/../cert.pem`, `${url}/hello`],
    prints: /^hello$/m,
  },
  git: {
    program: 'git',
    command: (url, home) => ['clone', '-q', '--progress', `${url}/tiny.git`, `${home}/clone`],
    env: (_url, _home, certificate) => ({ GIT_SSL_CAINFO: certificate, GIT_CONFIG_GLOBAL: '/dev/null' }),
    prints: /^$/,
  },
  npm: {
    program: 'npm',
    command: () => ['install', '--no-audit', '--no-fund', '--no-update-notifier', 'tiny'],
    env: (url, home, certificate) => ({
      npm_config_registry: url,
      npm_config_cache: `${home}/cache`,
      NODE_EXTRA_CA_CERTS: certificate,
    }),
    files: () => ({ 'package.json': '{"name":"user"}' }),
    prints: /added 1 package/,
  },
  pip: {
    program: 'pip',
    command: (url) => ['index', 'versions', 'tiny', '--index-url', `${url}/simple/`, '--disable-pip-version-check'],
    env: (_url, home, certificate) => ({ PIP_CERT: certificate, PIP_CACHE_DIR: `${home}/cache` }),
    prints: /tiny \(1\.0\)/,
  },
  go: {
    program: 'go',
    command: () => ['list', '-m', '-versions', 'tiny.test/tiny'],
    env: (url, home, certificate) => ({
      GOPROXY: url,
      GOMODCACHE: `${home}/mod`,
      GOCACHE: `${home}/cache`,
      GOFLAGS: '-mod=mod -modcacherw',
      GONOSUMDB: 'tiny.test',
      SSL_CERT_FILE: certificate,
    }),
    files: () => ({ 'go.mod': 'module user\n' }),
    prints: /tiny\.test\/tiny v1\.0\.0/,
  },
  cargo: {
    program: 'cargo',
    command: () => ['fetch'],
    env: (url, home, certificate) => ({
      CARGO_HOME: `${home}/cargo`,
      // The toolchains of rustup, if cargo is its.
      RUSTUP_HOME: process.env.RUSTUP_HOME ?? join(homedir(), '.rustup'),
      CARGO_HTTP_CAINFO: certificate,
      CARGO_REGISTRIES_OWN_INDEX: `sparse+${url}/crates/`,
    }),
    files: () => ({
      'Cargo.toml':
        '[package]\nname = "user"\nversion = "1.0.0"\n[dependencies]\ntiny = { version = "1", registry = "own" }\n',
      'src/lib.rs': '',
    }),
    prints: /Downloaded tiny v1\.0\.0/,
  },
  apt: {
    program: 'apt-get',
    command: (_url, home) =>
      [
        `Dir::State=${home}`,
        `Dir::Cache=${home}`,
        `Dir::Etc::SourceList=${home}/sources.list`,
        'Dir::Etc::SourceParts=/dev/null',
        'Dir::Etc::Parts=/dev/null',
        'APT::Sandbox::User=root',
        `Acquire::https::CAInfo=${home}/../cert.pem`,
      ]
        .flatMap((option) => ['-o', option])
        .concat('update'),
    files: (url) => ({ 'sources.list': `deb [trusted=yes] ${url}/apt/ ./\n`, 'lists/partial/.keep': '', status: '' }),
    prints: /Get:\d+ https:\/\/packages\.test:\d+\/apt \.\/ Packages/,
  },
};

describe('the variables of a sandbox with a network', () => {
  let directory = '';
  let url = '';
  let proxy: ServedProxy;
  const server = createServer();
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-packages-'));
    const certificate = await createCertificate(host);
    await writeFile(join(directory, 'cert.pem'), certificate.cert);
    server.setSecureContext(certificate);
    const port = await listenInNetwork(server);
    url = `https://${host}:${port}`;
    await writeArchives(join(directory, 'served'), url);
    server.on('request', ({ url: path = '/' }, response) => {
      const file = join(directory, 'served', new URL(path, url).pathname.replace(/\/$/, '/index.html'));
      readFile(file).then(
        (content) =>
          response.setHeader('content-type', extname(file) === '.html' ? 'text/html' : 'text/plain').end(content),
        () => response.writeHead(404).end(),
      );
    });
    proxy = await serveProxy({
      policy: { mode: 'allowlist', hosts: [host], ports: [port] },
      network: loopbackNetwork({ [host]: [ownAddress] }),
    });
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
    await rm(directory, { recursive: true, force: true });
  });

  for (const [name, client] of Object.entries(clients)) {
    it(`lead ${name} through the proxy`, async (t) => {
      if (!(await isInstalled(client.program))) return t.skip(`${client.program} is not installed`);
      const home = join(directory, name);
      await writeFiles(home, client.files?.(url) ?? {});
      const before = requests();
      const { stdout, stderr } = await run(client.program, [...client.command(url, home)], {
        cwd: home,
        env: { ...variables(), ...client.env?.(url, home, join(directory, 'cert.pem')), HOME: home },
      });
      assert.match(stdout + stderr, client.prints);
      assert.ok(requests() > before);
    });
  }

  /** The variables that an agent gets, with the port of this test's proxy. */
  const variables = (): Record<string, string> => ({
    PATH: process.env.PATH ?? '',
    ...Object.fromEntries(
      Object.entries(networkVariables).map(([name, value]) => [
        name,
        value.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${proxy.port}`),
      ]),
    ),
  });
  const requests = (): number => proxy.proxy.rows().reduce((sum, row) => sum + row.requests, 0);
});

/** Writes an archive of each kind with the package `tiny`. */
async function writeArchives(root: string, url: string): Promise<void> {
  const npm = await packed({ 'package/package.json': '{"name":"tiny","version":"1.0.0"}' });
  const crate = await packed({
    'tiny-1.0.0/Cargo.toml': '[package]\nname = "tiny"\nversion = "1.0.0"\n',
    'tiny-1.0.0/src/lib.rs': '',
  });
  const dist = { tarball: `${url}/tiny.tgz`, shasum: createHash('sha1').update(npm).digest('hex') };
  const cksum = createHash('sha256').update(crate).digest('hex');
  await writeFiles(root, {
    hello: 'hello\n',
    tiny: JSON.stringify({
      name: 'tiny',
      'dist-tags': { latest: '1.0.0' },
      versions: { '1.0.0': { name: 'tiny', version: '1.0.0', dist } },
    }),
    'tiny.tgz': npm,
    'simple/tiny/index.html': '<a href="tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>',
    'tiny.test/tiny/@v/list': 'v1.0.0\n',
    'tiny.test/tiny/@v/v1.0.0.info': '{"Version":"v1.0.0"}',
    'tiny.test/tiny/@v/v1.0.0.mod': 'module tiny.test/tiny\n',
    'crates/config.json': JSON.stringify({ dl: `${url}/crate` }),
    'crates/ti/ny/tiny': JSON.stringify({ name: 'tiny', vers: '1.0.0', deps: [], cksum, features: {}, yanked: false }),
    'crate/tiny/1.0.0/download': crate,
    'apt/Packages': '',
  });
  const repository = join(root, 'tiny.git');
  const git = (...argv: readonly string[]) => run('git', ['-C', repository, ...argv]);
  await run('git', ['init', '-q', '--bare', repository]);
  const { stdout: tree } = await git('write-tree');
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@packages.test'];
  const { stdout: commit } = await git(...who, 'commit-tree', '-m', 'one', tree.trim());
  await git('update-ref', 'HEAD', commit.trim());
  await git('update-server-info');
}

async function packed(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'temper-packed-'));
  try {
    await writeFiles(directory, files);
    await run('tar', ['-C', directory, '-czf', join(directory, '.tgz'), ...Object.keys(files)]);
    return await readFile(join(directory, '.tgz'));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function writeFiles(root: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  await mkdir(root, { recursive: true });
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), content);
  }
}

async function isInstalled(program: string): Promise<boolean> {
  const places = (process.env.PATH ?? '').split(delimiter).map((place) => join(place, program));
  const found = await Promise.all(
    places.map((place) =>
      access(place, constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.includes(true);
}
