import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createInFlight } from '../../../../../infra/sandbox/docker/images/in-flight.ts';

const never = new AbortController().signal;
const ignore = (): void => undefined;

describe('work that several callers request at once', () => {
  const start = () => {
    const inFlight = createInFlight<string, string>();
    const signals: AbortSignal[] = [];
    const ends: PromiseWithResolvers<string>[] = [];
    let publish: (progress: string) => void = ignore;
    const work = (report: (progress: string) => void, signal: AbortSignal): Promise<string> => {
      signals.push(signal);
      publish = report;
      const end = Promise.withResolvers<string>();
      ends.push(end);
      return end.promise;
    };
    return { inFlight, signals, ends, work, publish: (text: string) => publish(text) };
  };

  it('is done once and reports its progress to every caller, even a late one', async () => {
    const { inFlight, signals, ends, work, publish } = start();
    const reports: string[] = [];
    const joined = ['a', 'b'].map((caller) =>
      inFlight.join('k', work, (text) => reports.push(`${caller}:${text}`), never),
    );
    await Promise.resolve();
    publish('half');
    joined.push(inFlight.join('k', work, (text) => reports.push(`c:${text}`), never));
    ends[0]?.resolve('done');
    assert.deepEqual(await Promise.all(joined), ['done', 'done', 'done']);
    assert.deepEqual([signals.length, reports], [1, ['a:half', 'b:half', 'c:half']]);
  });

  it('continues while one caller waits, is aborted when the last one leaves, and then starts fresh', async () => {
    const { inFlight, signals, ends, work } = start();
    const [one, two] = [new AbortController(), new AbortController()];
    const first = inFlight.join('k', work, ignore, one.signal);
    const second = inFlight.join('k', work, ignore, two.signal);
    await Promise.resolve();
    one.abort(new Error('one leaves'));
    await assert.rejects(first, /one leaves/);
    assert.equal(signals[0]?.aborted, false);
    two.abort(new Error('two leaves'));
    await assert.rejects(second, /two leaves/);
    assert.equal(signals[0]?.aborted, true);
    const third = inFlight.join('k', work, ignore, never);
    await Promise.resolve();
    ends[0]?.reject(new Error('the first one ends at last'));
    ends[1]?.resolve('fresh');
    assert.equal(await third, 'fresh');
  });

  it('fails for every caller and can be requested again', async () => {
    const { inFlight, ends, work } = start();
    const joined = [inFlight.join('k', work, ignore, never), inFlight.join('k', work, ignore, never)];
    await Promise.resolve();
    ends[0]?.reject(new Error('broken'));
    for (const one of joined) await assert.rejects(one, /broken/);
    const again = inFlight.join('k', work, ignore, never);
    await Promise.resolve();
    ends[1]?.resolve('well');
    assert.equal(await again, 'well');
  });
});
