import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { cliOn } from '../../helpers/cli.ts';

const here = { url: 'http://127.0.0.1:8000/model/v1', model: 'openenv', namesSession: true };
const cases: readonly (readonly [string, object, readonly string[], RegExp])[] = [
  ['without its entry in upstreams.json', {}, [], /got openenv; .*must have.*"namesSession":true/],
  ['with an entry of another port', { openenv: here }, ['--port', '8001'], /does not lead to this server.*:8001/],
  [
    'with an entry that names no session',
    { openenv: { ...here, namesSession: false } },
    [],
    /does not lead to this server.*without namesSession/,
  ],
  [
    'for other machines without TLS, token and key',
    { openenv: here },
    ['--listen', '0.0.0.0'],
    /--listen: 0.0.0.0 .* needs --tls-cert and --tls-key, TEMPER_OPENENV_TOKEN, apiKeyFrom of openenv/,
  ],
  [
    'with files that hold no certificate and key',
    { openenv: here },
    ['--tls-cert', import.meta.filename, '--tls-key', import.meta.filename],
    /--tls-cert=.*, --tls-key=.*: expected a certificate and its own key as PEM/,
  ],
  ['with an unknown reward policy', { openenv: here }, ['--reward-policy', 'none'], /--reward-policy: .*got "?none/],
];

it('temper openenv serve is refused before it begins', async (t) => {
  const homes = await Promise.all(cases.map(() => mkdtemp(join(tmpdir(), 'temper-openenv-'))));
  t.after(() => Promise.all(homes.map((home) => rm(home, { recursive: true }))));
  const server = { address: '127.0.0.1:1', namespace: 'default' };
  await Promise.all(
    cases.map(async ([what, upstreams, args, message], index) => {
      const home = homes[index] ?? assert.fail();
      await writeFile(join(home, 'upstreams.json'), JSON.stringify(upstreams));
      const { code, stderr } = await cliOn(home, server).run(
        'openenv',
        'serve',
        '--tasks',
        'generated:test/1?count=2',
        ...args,
      );
      assert.equal(code, 2, `${what}: ${stderr}`);
      assert.match(stderr, message, what);
    }),
  );
});
