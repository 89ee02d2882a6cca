import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { pythonWith } from '../../../../helpers/python-packages.ts';
import { startTestPolicy } from './policy-server.ts';

const run = promisify(execFile);

/** The oldest and the newest version of the SDK that the policy server supports. */
const sdkVersions = ['0.25.0', '0.38.0'];

/** The packages that the SDK needs, without `transformers`, which only its tokenizers need. */
const needed = [
  'anyio<5',
  'click',
  'distro<2',
  'httpx[http2]<1',
  'numpy',
  'orjson',
  'protobuf>=4.21',
  'pydantic<3',
  'pyqwest',
  'rich',
  'sniffio',
  'typing-extensions<5',
  'zstandard',
];

describe('the official tinker SDK trains, samples, saves, restores, and learns what is not supported', () => {
  for (const version of sdkVersions) {
    it(`in version ${version}`, { timeout: 800_000 }, async (t) => {
      const found = await pythonWith({ name: 'tinker', version, needed });
      if ('missing' in found) return t.skip(found.missing);
      const policy = await startTestPolicy();
      t.after(() => policy.close());
      const script = join(import.meta.dirname, 'tinker_client.py');
      const env = { PATH: process.env.PATH, HOME: process.env.HOME, TINKER_TELEMETRY: '0', NO_PROXY: '127.0.0.1' };
      const { stdout } = await run(found.python, [script, policy.url], { timeout: 600_000, env });
      const seen = JSON.parse(stdout);

      assert.equal(seen.version, version);
      assert.deepEqual(seen.models, ['policy']);
      assert.ok(seen.losses.at(-1) < seen.losses[0] / 2, `expected the loss to fall, got ${seen.losses}`);
      assert.deepEqual([seen.tokens.length, seen.tokens[0].length, seen.promptLogprobs], [3, 6, 4]);
      assert.equal(seen.sampleGap, 0, 'sampled logprobs are the trainer’s, bit for bit');
      for (const metrics of Object.values(seen.rl)) assert.ok(Object.keys(metrics as object).includes('ratio:mean'));
      assert.match(seen.saved, /^tinker:\/\/model_[0-9a-f]+\/weights\/sdk$/);
      assert.equal(seen.restored, true);
      assert.equal(seen.scored, 0);
      assert.equal(new Set(seen.sequenceIds).size, version === '0.25.0' ? 0 : 3, 'one id for each sequence');
      for (const [request, refusal] of Object.entries(seen.refused)) assert.match(String(refusal), new RegExp(request));
    });
  }
});
