import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createUpstreams } from '../../../../infra/gateway/upstream/upstreams.ts';

describe('the file of upstream models', () => {
  let dir = '';
  let path = '';

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'temper-upstreams-'));
    path = join(dir, 'upstreams.json');
  });
  after(() => rm(dir, { recursive: true, force: true }));

  const find = async (name: string, contents: unknown, environment: Record<string, string> = {}) => {
    await writeFile(path, typeof contents === 'string' ? contents : JSON.stringify(contents));
    return createUpstreams(path, environment).find(name);
  };
  const large = { url: 'https://api.example.com/v1', model: 'large-1', apiKeyFrom: 'LARGE_KEY' };

  it('names a model and the variable that holds its key', async () => {
    assert.deepEqual(await find('large', { large }, { LARGE_KEY: 'secret ' }), {
      name: 'large',
      url: 'https://api.example.com/v1',
      model: 'large-1',
      apiKey: 'secret',
      maxTokensField: 'max_tokens',
      returnsReasoning: false,
      readsImages: false,
      namesSession: false,
    });
    const open = await find('open', { open: { url: 'http://127.0.0.1:8000/v1', model: 'm', contextLength: 4096 } });
    assert.deepEqual([open.apiKey, open.contextLength], [null, 4096]);
  });

  it('is read again at each call', async () => {
    const upstreams = createUpstreams(path, {});
    await writeFile(path, '{}');
    await assert.rejects(upstreams.find('later'), { type: 'UnknownUpstream' });
    await writeFile(path, JSON.stringify({ later: { url: 'http://x/v1', model: 'm' } }));
    assert.equal((await upstreams.find('later')).model, 'm');
  });

  it('reports an unknown name with the known ones and what to do', async () => {
    await assert.rejects(find('other', { large }), {
      type: 'UnknownUpstream',
      message: `upstream: expected one that ${path} names (large), got other; add it to that file`,
    });
    await assert.rejects(find('constructor', { large }), { type: 'UnknownUpstream' });
    await assert.rejects(createUpstreams(join(dir, 'none.json'), {}).find('large'), {
      type: 'UnknownUpstream',
      message: /\(none\), got large/,
    });
  });

  it('reports an invalid entry with file and field, and never quotes its value', async () => {
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      ['{"large": "hidden', /upstreams\.json: expected a JSON object/],
      [{ large: { ...large, url: 'api.example.com' } }, /large\.url: expected an address that begins with http/],
      [{ large: { ...large, url: 'https://me:hidden@x/v1' } }, /large\.url: expected an address without a password/],
      [{ large: { url: large.url } }, /large\.model: expected the name of the model/],
      [{ large: { ...large, apiKey: 'hidden' } }, /large: .*apiKey/],
      [{ large: { ...large, apiKeyFrom: 'sk-hidden value' } }, /large\.apiKeyFrom: expected the name of a variable/],
    ];
    for (const [contents, message] of wrong) {
      const refused = find('large', contents, { LARGE_KEY: 'secret' });
      await assert.rejects(refused, (error: Error & { type: string }) => {
        assert.equal(error.type, 'InvalidInput');
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /hidden/);
        return true;
      });
    }
  });

  it('reports a variable that is not set by its name', async () => {
    await assert.rejects(find('large', { large }, { LARGE_KEY: ' ' }), {
      type: 'InvalidInput',
      message: /large\.apiKeyFrom: expected LARGE_KEY in the environment of the stack, got nothing/,
    });
  });
});
