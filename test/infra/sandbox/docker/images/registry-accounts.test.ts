import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createRegistryAccounts, registryOf } from '../../../../../infra/sandbox/docker/images/registry-accounts.ts';

const { signal } = new AbortController();
const basic = (name: string, password: string): string => Buffer.from(`${name}:${password}`).toString('base64');

describe('the account for a pull', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-accounts-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  async function accountFor(image: string, config: unknown) {
    const text = typeof config === 'string' ? config : JSON.stringify(config);
    await writeFile(join(directory, 'config.json'), text);
    return createRegistryAccounts({ directory, env: { PATH: `${directory}:${process.env.PATH}` } })(image, signal);
  }

  it("is that of the image's registry alone, in every spelling", async () => {
    const auths = {
      'https://index.docker.io/v1/': { auth: basic('hub', 'h:1') },
      'https://r.example:5000/v2/': { auth: basic('ours', 'o') },
      'other.example': { auth: basic('other', 'x') },
    };
    const nameFor = async (image: string): Promise<unknown> => (await accountFor(image, { auths })).auth;
    const hub = 'https://index.docker.io/v1/';
    for (const image of ['debian', 'swebench/x:latest', 'docker.io/library/debian']) {
      assert.deepEqual(await nameFor(image), { username: 'hub', password: 'h:1', serveraddress: hub });
    }
    assert.deepEqual(await nameFor('r.example:5000/a/b@sha256:00'), {
      username: 'ours',
      password: 'o',
      serveraddress: 'r.example:5000',
    });
    assert.deepEqual(await accountFor('r.example/a/b', { auths }), {});
    assert.deepEqual([registryOf('localhost/a'), registryOf('a/b')], ['localhost', hub]);
  });

  it('can be a token', async () => {
    const auths = { 'r.example': { auth: basic('00000000', ''), identitytoken: 'T' } };
    assert.equal(
      JSON.stringify((await accountFor('r.example/a', { auths })).auth).includes('"identitytoken":"T"'),
      true,
    );
  });

  it('comes from the helper for its registry, or from the helper for all', async () => {
    const answer = '{"ServerURL":"\'"$host"\'","Username":"\'"$0 $1"\'","Secret":"S"}';
    const script = `#!/bin/sh\nread -r host\n[ "$host" != none.example ] || { echo 'credentials not found in native keychain'; exit 1; }\nprintf '%s' '${answer}'\n`;
    for (const name of ['one', 'all']) {
      await writeFile(join(directory, `docker-credential-${name}`), script, { mode: 0o755 });
    }
    const config = { credsStore: 'all', credHelpers: { 'r.example': 'one' }, auths: { 'r.example': {} } };
    const of = async (image: string) => JSON.stringify((await accountFor(image, config)).auth);
    assert.match(await of('r.example/a'), /docker-credential-one get","password":"S","serveraddress":"r\.example"/);
    assert.match(await of('debian'), /docker-credential-all get","password":"S","serveraddress":"https:\/\/index/);
    assert.deepEqual(await accountFor('none.example/a', config), {});
  });

  it('is absent if it can not be read, with a reason that holds no secret', async () => {
    const broken = 'printf \'{"Secret":"S3CRET"\'; echo S3CRET >&2;';
    await writeFile(join(directory, 'docker-credential-broken'), `#!/bin/sh\n${broken} exit 3\n`, { mode: 0o755 });
    await writeFile(join(directory, 'docker-credential-odd'), `#!/bin/sh\n${broken}\n`, { mode: 0o755 });
    const cases: readonly (readonly [unknown, RegExp])[] = [
      ['{"auths": {"r.example": {"auth": "S3CRET"', /config\.json is not a valid Docker configuration$/],
      [{ auths: { 'r.example': { auth: Buffer.from('S3CRET').toString('base64') } } }, /without name and password$/],
      [
        { credsStore: 'broken' },
        /^expected docker-credential-broken to give an account for r\.example, got exit code 3$/,
      ],
      [{ credsStore: 'odd' }, /got something else$/],
      [{ credsStore: 'absent' }, /got exit code ENOENT$/],
    ];
    for (const [config, problem] of cases) {
      const account = await accountFor('r.example/a', config);
      assert.equal(account.auth, undefined);
      assert.match(account.problem ?? '', problem);
      assert.doesNotMatch(account.problem ?? '', /S3CRET/);
    }
    await rm(join(directory, 'config.json'));
    assert.deepEqual(await createRegistryAccounts({ directory, env: {} })('r.example/a', signal), {});
  });
});
