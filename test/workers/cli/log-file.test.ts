import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { createLogFile, type LogFile } from '../../../workers/cli/commands/logs/log-file.ts';

describe('a log that is followed', () => {
  let directory: string;
  let path: string;
  let log: LogFile;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'temper-logs-'));
  });
  after(() => rm(directory, { recursive: true }));
  beforeEach(async () => {
    path = join(directory, 'host.log');
    await writeFile(path, 'one\ntwo\nthree\n');
    log = createLogFile(path);
  });
  afterEach(() => log.close());

  it('begins with its last lines, however many there are', async () => {
    for (const [lines, expected] of [
      [0, []],
      [2, ['two', 'three']],
      [9, ['one', 'two', 'three']],
    ] as const) {
      await log.keepLast(lines);
      assert.deepEqual(await log.readLines(), expected);
    }
    const long = Array.from({ length: 3000 }, (_, index) => `${index} ${'x'.repeat(60)}`);
    await writeFile(path, `${long.join('\n')}\n`);
    await log.keepLast(2500);
    assert.deepEqual(await log.readLines(), long.slice(500));
  });

  it('returns each line once it is complete, also where a character was written in two parts', async () => {
    await log.keepLast(0);
    const [start, end] = [Buffer.from('caf\u00e9').subarray(0, 4), Buffer.from('\u00e9\n').subarray(1)];
    await appendFile(path, start);
    assert.deepEqual(await log.readLines(), []);
    await appendFile(path, end);
    assert.deepEqual(await log.readLines(), ['caf\u00e9']);
  });

  it('continues at the beginning when it is cut', async () => {
    await log.keepLast(0);
    await truncate(path);
    await appendFile(path, 'cut\n');
    assert.deepEqual(await log.readLines(), ['cut']);
  });

  it('is read to its end when it is renamed, and continues with the file that takes its name', async () => {
    await log.keepLast(0);
    await appendFile(path, 'last\n');
    await rename(path, `${path}.1`);
    assert.deepEqual(await log.readLines(), ['last']);
    await writeFile(path, 'first\n');
    assert.deepEqual(await log.readLines(), ['first']);
  });

  it('may appear later', async () => {
    const later = createLogFile(join(directory, 'gateway.log'));
    await later.keepLast(5);
    assert.deepEqual(await later.readLines(), []);
    await writeFile(join(directory, 'gateway.log'), 'up\n');
    assert.deepEqual(await later.readLines(), ['up']);
    await later.close();
  });
});
