import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createSecretCheck, secretOf } from '../../infra/gateway/secret.ts';
import { pathsBelow } from '../../infra/paths.ts';
import { readConfig } from '../../infra/settings/config.ts';
import {
  copyKeyFingerprints,
  identityOf,
  openStackId,
  openStackKeys,
  parseKeys,
  replaceStackKeys,
} from '../../infra/stack.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import type { Objects } from '../../infra/store/objects.ts';
import { openBucket } from '../../infra/store/s3/open.ts';
import { stackFormat } from '../../workflows/contracts/format.ts';
import { type S3Server, startS3Server } from '../helpers/store/s3-server.ts';

const [one, two, three] = ['1', '2', '3'].map((digit) => digit.repeat(64)) as [string, string, string];

describe('the hosts of a stack', () => {
  let server: S3Server;
  let root: string;
  before(async () => {
    server = await startS3Server();
    root = await mkdtemp(join(tmpdir(), 'temper-stack-'));
  });
  after(async () => {
    await server?.close();
    await rm(root, { recursive: true, force: true });
  });

  const newHome = () => mkdtemp(join(root, 'home-')).then(pathsBelow);
  const newStack = (): Objects => openBucket(server.place());
  const keysFrom = (text: string) => async () => parseKeys(text, 'TEMPER_STACK_KEY');

  it('agree on one id, which each home keeps', async () => {
    const objects = newStack();
    const homes = await Promise.all([newHome(), newHome(), newHome()]);
    const ids = await Promise.all(homes.map((paths) => openStackId(paths, objects)));
    assert.equal(new Set(ids).size, 1);
    for (const { stackFile } of homes)
      assert.deepEqual(JSON.parse(await readFile(stackFile, 'utf8')), { id: ids[0], format: stackFormat });
  });

  it('refuse the store of another stack', async () => {
    const paths = await newHome();
    const id = await openStackId(paths, newStack());
    await assert.rejects(openStackId(paths, await other()), {
      message: new RegExp(
        `belongs to stack .*, and .* says that this home is of stack ${id}; give each stack a prefix`,
      ),
    });

    async function other(): Promise<Objects> {
      const objects = newStack();
      await openStackId(await newHome(), objects);
      return objects;
    }
  });

  it('refuse a store and a home of another format, or of none, by name', async () => {
    const id = '0b5a3e3e-6f6c-4ac5-9c0f-3f0d6a1d2c11';
    for (const format of [undefined, stackFormat - 1, stackFormat + 1, 'one']) {
      const [paths, objects] = [await newHome(), newStack()];
      const text = JSON.stringify({ id, format });
      await objects.replace('stack.json', new TextEncoder().encode(text), null);
      const got = format === undefined ? 'none' : JSON.stringify(format);
      const refused = new RegExp(
        `stack.json: expected format ${stackFormat}, got ${got}: .*another\\s+home in TEMPER_HOME`,
      );
      await assert.rejects(openStackId(paths, objects), refused);
      await assert.rejects(openStackKeys({ paths, stackKeys: keysFrom(one) }, objects), refused);
      await assert.rejects(identityOf(objects), refused);
      await writeFile(paths.stackFile, text);
      await assert.rejects(openStackId(paths, newStack()), refused);
      await assert.rejects(openStackId(paths, createDirectory(join(paths.stackFile, '..'))), refused);
    }
  });

  it('accept no secret of another stack that was given the same key', async () => {
    const open = async () => {
      const [paths, objects] = [await newHome(), newStack()];
      await openStackId(paths, objects);
      return await openStackKeys({ paths, stackKeys: keysFrom(one) }, objects);
    };
    const [ours, theirs] = [await open(), await open()];
    const secret = secretOf(theirs[0], 'run/group-1/rollout-1.1');
    assert.equal(createSecretCheck(theirs)(secret), 'run/group-1/rollout-1.1');
    assert.equal(createSecretCheck(ours)(secret), null);
  });

  it('share a key, which the first one creates and no other can guess', async () => {
    const objects = newStack();
    const [first, second] = [await newHome(), await newHome()];
    await openStackId(first, objects);
    const keys = await openStackKeys({ paths: first, stackKeys: null }, objects);
    assert.equal((await stat(first.stackKey)).mode & 0o777, 0o600);
    assert.deepEqual(await openStackKeys({ paths: first, stackKeys: null }, objects), keys);
    const without = openStackKeys({ paths: second, stackKeys: null }, objects);
    await assert.rejects(without, { message: /expected a key of stack .* got none; copy stack.key from the home/ });
    await assert.rejects(openStackKeys({ paths: second, stackKeys: keysFrom(two) }, objects), (error: Error) => {
      assert.match(error.message, /this host has no key of stack .*; give all hosts of a stack the same key/);
      return !error.message.includes(two);
    });
    await writeFile(second.stackKey, await readFile(first.stackKey));
    assert.deepEqual(await openStackKeys({ paths: second, stackKeys: null }, objects), keys);
  });

  it('change their key one after the other', async () => {
    const objects = newStack();
    const paths = await newHome();
    await openStackId(paths, objects);
    const open = (text: string) => openStackKeys({ paths, stackKeys: keysFrom(text) }, objects);
    const [older] = await open(one);
    await assert.rejects(open(two), /has no key of stack/);
    const both = await open(`${two},${one}`);
    assert.equal(createSecretCheck(both)(secretOf(older, 'kept.1')), 'kept.1');
    await open(one);
    const alone = await open(two);
    assert.equal(createSecretCheck(alone)(secretOf(both[0], 'later.1')), 'later.1');
    assert.equal(createSecretCheck(alone)(secretOf(older, 'kept.1')), null);
    await assert.rejects(open(three), /has no key of stack/);
  });

  it('replace a key that is lost, and refuse one that was replaced', async () => {
    const [lost, found, objects] = [await newHome(), await newHome(), newStack()];
    const id = await openStackId(lost, objects);
    await openStackKeys({ paths: lost, stackKeys: null }, objects);
    const opens = openStackKeys({ paths: found, stackKeys: null }, objects);
    await assert.rejects(opens, /If the key is lost, run `temper store replace-key`/);
    assert.equal(await replaceStackKeys({ paths: found, stackKeys: null }, objects), id);
    await openStackKeys({ paths: found, stackKeys: null }, objects);
    await assert.rejects(openStackKeys({ paths: lost, stackKeys: null }, objects), /has no key of stack/);
    await assert.rejects(replaceStackKeys({ paths: found, stackKeys: null }, newStack()), /is no stack's store/);
    const other = newStack();
    await openStackId(await newHome(), other);
    await assert.rejects(replaceStackKeys({ paths: lost, stackKeys: null }, other), /belongs to stack .* of stack/);
  });

  it('have the same keys in a copy of their store', async () => {
    const [paths, copy] = [await newHome(), newStack()];
    const home = createDirectory(join(paths.stackFile, '..'));
    const open = (text: string) => openStackKeys({ paths, stackKeys: keysFrom(text) }, copy);
    for (const objects of [home, copy]) await openStackId(paths, objects);
    await copyKeyFingerprints(home, copy);
    await openStackKeys({ paths, stackKeys: keysFrom(one) }, home);
    await copyKeyFingerprints(home, copy);
    await assert.rejects(open(two), /has no key of stack/);
    await open(`${two},${one}`);
    await copyKeyFingerprints(home, copy);
    await open(two);
  });
});

describe('the setting of the key', () => {
  it('is a variable or a file, not both', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'temper-key-'));
    const file = join(directory, 'keys');
    await mkdir(directory, { recursive: true });
    await writeFile(file, `${one}\n${two}\n`);
    try {
      const read = async (settings: Record<string, string>) =>
        (await readConfig(settings).stackKeys?.())?.map((key) => key.toString('hex'));
      assert.deepEqual(await read({ TEMPER_STACK_KEY: one }), [one]);
      assert.deepEqual(await read({ TEMPER_STACK_KEY_FILE: file }), [one, two]);
      assert.equal(await read({}), undefined);
      await assert.rejects(read({ TEMPER_STACK_KEY: one, TEMPER_STACK_KEY_FILE: file }), /got both; unset one of them/);
      await assert.rejects(read({ TEMPER_STACK_KEY: 'secret' }), (error: Error) => {
        assert.match(
          error.message,
          /TEMPER_STACK_KEY: expected keys of at least 64 hexadecimal digits, got a word of 6/,
        );
        return !error.message.includes('secret');
      });
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
