import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { BoundedLog } from '../../../../infra/sandbox/docker/images/bounded-log.ts';
import { createFlights } from '../../../../infra/sandbox/docker/images/flights.ts';
import { createGate } from '../../../../infra/sandbox/docker/images/gate.ts';

const none = new AbortController().signal;

describe('a gate', () => {
  it('lets so many in at once, in their order, and lets go of those that give up', async () => {
    const gate = createGate(2);
    const entered: number[] = [];
    const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
    const givingUp = new AbortController();
    const works = ends.map(({ promise }, index) =>
      gate.run(
        async () => {
          entered.push(index);
          await promise;
        },
        index === 2 ? givingUp.signal : none,
      ),
    );
    await setImmediate();
    assert.deepEqual(entered, [0, 1]);
    givingUp.abort(new Error('enough'));
    await assert.rejects(works[2] ?? Promise.resolve(), /enough/);
    ends[1]?.reject(new Error('failed'));
    await assert.rejects(works[1] ?? Promise.resolve(), /failed/);
    await setImmediate();
    assert.deepEqual(entered, [0, 1, 3]);
    for (const { resolve } of ends) resolve();
    await Promise.all([works[0], works[3]]);
  });
});

describe('the same work, asked for at once', () => {
  const start = () => {
    const flights = createFlights<string, string>();
    const began: AbortSignal[] = [];
    const ends: PromiseWithResolvers<string>[] = [];
    let say: (progress: string) => void = () => undefined;
    const work = (report: (progress: string) => void, signal: AbortSignal): Promise<string> => {
      began.push(signal);
      say = report;
      const end = Promise.withResolvers<string>();
      ends.push(end);
      return end.promise;
    };
    return { flights, began, ends, work, say: (text: string) => say(text) };
  };

  it('is done once, and all hear how far it is, also who comes late', async () => {
    const { flights, began, ends, work, say } = start();
    const heard: string[] = [];
    const joined = ['a', 'b'].map((who) => flights.join('k', work, (text) => heard.push(`${who}:${text}`), none));
    await Promise.resolve();
    say('half');
    joined.push(flights.join('k', work, (text) => heard.push(`c:${text}`), none));
    ends[0]?.resolve('done');
    assert.deepEqual(await Promise.all(joined), ['done', 'done', 'done']);
    assert.deepEqual([began.length, heard], [1, ['a:half', 'b:half', 'c:half']]);
  });

  it('goes on while one wants it, is ended by the last who leaves, and then begins anew', async () => {
    const { flights, began, ends, work } = start();
    const [one, two] = [new AbortController(), new AbortController()];
    const ignore = (): void => undefined;
    const first = flights.join('k', work, ignore, one.signal);
    const second = flights.join('k', work, ignore, two.signal);
    await Promise.resolve();
    one.abort(new Error('one leaves'));
    await assert.rejects(first, /one leaves/);
    assert.equal(began[0]?.aborted, false);
    two.abort(new Error('two leaves'));
    await assert.rejects(second, /two leaves/);
    assert.equal(began[0]?.aborted, true);
    const third = flights.join('k', work, ignore, none);
    await Promise.resolve();
    ends[0]?.reject(new Error('the first one ends at last'));
    ends[1]?.resolve('anew');
    assert.equal(await third, 'anew');
  });

  it('fails for all, and may be asked for again', async () => {
    const { flights, ends, work } = start();
    const ignore = (): void => undefined;
    const joined = [flights.join('k', work, ignore, none), flights.join('k', work, ignore, none)];
    await Promise.resolve();
    ends[0]?.reject(new Error('broken'));
    for (const one of joined) await assert.rejects(one, /broken/);
    const again = flights.join('k', work, ignore, none);
    await Promise.resolve();
    ends[1]?.resolve('well');
    assert.equal(await again, 'well');
  });
});

it('a log of any length keeps its beginning, its end and its last words', () => {
  const log = new BoundedLog();
  log.push('first line\n');
  for (let index = 0; index < 20_000; index += 1) log.push(`line ${index} ${'x'.repeat(100)}\n`);
  log.push('error one\n\nerror two\n');
  const text = String(log.bytes());
  assert.ok(text.length < 2 * 2 ** 20, `${text.length} bytes`);
  assert.match(text, /^first line\n[\s\S]*… output left out …[\s\S]*error two\n$/);
  assert.equal(log.lastWords(20), 'error one | error two');
});
