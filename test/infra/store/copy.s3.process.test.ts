import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { pathsBelow } from '../../../infra/paths.ts';
import { tryLock } from '../../../infra/process/file-lock.ts';
import { copyObjects } from '../../../infra/store/copy.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import { openBucket } from '../../../infra/store/s3/open.ts';
import { openSharedState } from '../../../infra/store/shared-state.ts';
import { cliOn } from '../../helpers/cli.ts';
import { startS3Server } from '../../helpers/store/s3-server.ts';

const server = await startS3Server();
const root = await mkdtemp(join(tmpdir(), 'temper-copy-'));
after(async () => {
  await server.close();
  await rm(root, { recursive: true, force: true });
});

const quiet = { onProgress: () => undefined, signal: new AbortController().signal };

async function filledHome() {
  const home = await mkdtemp(join(root, 'home-'));
  const state = await openSharedState({ kind: 'directory', root: home });
  const small = await state.blobs.put(randomBytes(1000), 'x/y');
  const large = await state.blobs.put(randomBytes(9 * 2 ** 20), 'x/y');
  for (let step = 1; step <= 20; step += 1) await state.runs.write('run', `step-${step}`, { step });
  await state.verdicts.write('ab', 'abc', { log: small.digest });
  await state.common.write('quarantine', 'one', { task: 'one' });
  await state.common.write('packs', 'two', { set: large.digest });
  await state.objects.replace('trainer/run.json', Buffer.from('{}'), null);
  return { home, state, small, large };
}

it('copies blobs, records and journals into a bucket, and nothing twice', async () => {
  const { state, small, large } = await filledHome();
  const place = server.place();
  const to = openBucket(place);
  const first = await copyObjects(state.objects, to, quiet);
  assert.deepEqual([first.objects, first.sent], [26, 26]);
  await state.runs.write('run', 'step-20', { step: 'later' });
  const again = await copyObjects(state.objects, to, quiet);
  assert.deepEqual([again.objects, again.sent], [26, 1]);
  const copied = await openSharedState(place);
  for (const { digest, size } of [small, large]) assert.equal((await copied.blobs.get(digest)).byteLength, size);
  assert.equal((await copied.runs.names('run')).length, 20);
  assert.deepEqual(await copied.runs.read('run', 'step-20'), { step: 'later' });
  assert.deepEqual(await copied.common.read('quarantine', 'one'), { task: 'one' });
});

it('continues a copy that was interrupted', async () => {
  const { state } = await filledHome();
  const to = openBucket(server.place());
  const stop = new AbortController();
  const onProgress = ({ objects }: { readonly objects: number }): void => {
    if (objects === 5) stop.abort(new Error('interrupted'));
  };
  await assert.rejects(copyObjects(state.objects, to, { onProgress, signal: stop.signal }), /interrupted/);
  const rest = await copyObjects(state.objects, to, quiet);
  assert.equal(rest.objects, 26);
  assert.ok(rest.sent < 26, `${rest.sent}`);
});

it('refuses to replace what the stack has changed in the destination since', async () => {
  const { home, state } = await filledHome();
  const place = server.place();
  const to = openBucket(place);
  await copyObjects(state.objects, to, quiet);
  const copied = await openSharedState(place);
  await copied.runs.write('run', 'step-20', { step: 'there' });
  // The store counts in whole seconds.
  const before = new Date(Date.now() - 5_000);
  await utimes(join(home, 'runs/run/step-20.json'), before, before);
  await assert.rejects(copyObjects(state.objects, to, quiet), {
    type: 'InvalidInput',
    message: /step-20.* was changed at .*the stack has worked on s3:.* since the last copy/,
  });
  assert.deepEqual(await copied.runs.read('run', 'step-20'), { step: 'there' });
});

it('refuses a blob whose bytes are not those of its digest, and repairs one in the destination', async () => {
  const { home, state, small, large } = await filledHome();
  const place = server.place();
  const to = openBucket(place);
  await copyObjects(state.objects, to, quiet);
  await server.damage(place, `store/${large.digest.slice(0, 2)}/${large.digest}`);
  assert.equal((await copyObjects(state.objects, to, quiet)).sent, 1);
  assert.equal((await (await openSharedState(place)).blobs.get(large.digest)).byteLength, large.size);
  await writeFile(join(home, 'store', small.digest.slice(0, 2), small.digest), 'other');
  await assert.rejects(copyObjects(createDirectory(home), to, quiet), { type: 'BlobMissing', message: /copy again/ });
});

it('is a command, which needs a bucket', async () => {
  const { home } = await filledHome();
  const { bucket, prefix } = server.place();
  const store = { TEMPER_STORE: `s3://${bucket}/${prefix}`, TEMPER_STORE_ENDPOINT: server.url, ...server.env };
  const nowhere = { address: '127.0.0.1:1', namespace: 'none' };
  const { code, stdout, stderr } = await cliOn(home, nowhere, store).run('store', 'copy', '--json');
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout).sent, 26);
  const refused = await cliOn(home, nowhere).run('store', 'copy');
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /expected a bucket to copy to in TEMPER_STORE/);
  const lock = await tryLock(pathsBelow(home).hostLock);
  assert.ok('release' in lock);
  const busy = await cliOn(home, nowhere, store).run('store', 'copy');
  await lock.release();
  assert.equal(busy.code, 1);
  assert.match(busy.stderr, /a host worker runs on .*stop all processes of the stack first/);
  const other = await mkdtemp(join(root, 'other-'));
  const taken = await cliOn(other, nowhere, store).run('store', 'copy');
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /belongs to stack/);
  assert.ok(!(stdout + stderr + taken.stderr).includes(server.env.AWS_SECRET_ACCESS_KEY ?? ''));
  const unconfirmed = await cliOn(home, nowhere, store).run('store', 'replace-key');
  assert.deepEqual([unconfirmed.code, /expected --yes/.test(unconfirmed.stderr)], [2, true]);
  const replaced = await cliOn(home, nowhere, store).run('store', 'replace-key', '--yes', '--json');
  assert.equal(replaced.code, 0, replaced.stderr);
  const { store: where, key } = JSON.parse(replaced.stdout);
  assert.deepEqual([where.slice(0, 3), key], ['s3:', `a new key in ${pathsBelow(home).stackKey}`]);
  // The credentials may also be those of a profile.
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, ...withoutKeys } = store as Record<string, string>;
  const profiles = join(root, 'credentials');
  await writeFile(profiles, `[temper]\naws_access_key_id = ${id}\naws_secret_access_key = ${secret}\n`, {
    mode: 0o600,
  });
  const profile = { ...withoutKeys, AWS_SHARED_CREDENTIALS_FILE: profiles, AWS_PROFILE: 'temper' };
  const checked = await cliOn(home, nowhere, profile).run('doctor', '--json');
  const line = checked.stdout.split('\n').find((text) => text.includes('"store"')) ?? '';
  assert.deepEqual(JSON.parse(line).state, 'ok');
  assert.match(line, /reads, conditional writes, listing and removal work/);
});
