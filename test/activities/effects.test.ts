import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Effect, endLeftEffects, takePart } from '../../activities/effects.ts';

const ignore = (): void => {};
const long = 600_000;

/** An effect that ends when the test ends it, or when its signal aborts. */
function createEffect() {
  const end = Promise.withResolvers<string>();
  const started: AbortSignal[] = [];
  const reports: ((details: unknown) => void)[] = [];
  const effect: Effect<string> = (signal, report) => {
    started.push(signal);
    reports.push(report);
    const abort = (): void => end.reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    return end.promise;
  };
  return { effect, started, end: end.resolve, report: (details: unknown) => reports[0]?.(details) };
}

describe('an effect of an activity', () => {
  it('is joined by a second attempt while it runs, and both have its result', async () => {
    const { effect, started, end } = createEffect();
    const first = takePart('a', effect, ignore);
    const second = takePart('a', effect, ignore);
    end('done');
    assert.deepEqual(await Promise.all([first.result, second.result]), ['done', 'done']);
    assert.equal(started.length, 1);
  });

  it('starts again once it has ended', async () => {
    const one = createEffect();
    const first = takePart('a', one.effect, ignore);
    one.end('one');
    await first.result;
    const other = createEffect();
    const second = takePart('a', other.effect, ignore);
    other.end('other');
    assert.equal(await second.result, 'other');
  });

  it('is not joined by another activity', async () => {
    const [one, other] = [createEffect(), createEffect()];
    const parts = [takePart('a', one.effect, ignore), takePart('b', other.effect, ignore)];
    one.end('one');
    other.end('other');
    assert.deepEqual(await Promise.all(parts.map(({ result }) => result)), ['one', 'other']);
  });

  it('tells its progress to every attempt, and to one that joins what it has told already', async () => {
    const { effect, end, report } = createEffect();
    const [seenFirst, seenSecond]: [unknown[], unknown[]] = [[], []];
    const first = takePart('a', effect, (details) => seenFirst.push(details));
    await Promise.resolve();
    report(1);
    takePart('a', effect, (details) => seenSecond.push(details));
    report(2);
    first.leave(long);
    report(3);
    assert.deepEqual(
      [seenFirst, seenSecond],
      [
        [1, 2],
        [1, 2, 3],
      ],
    );
    end('done');
    await first.result;
  });

  it('runs on when the attempt leaves, and is joined by the next', async () => {
    const { effect, started, end } = createEffect();
    takePart('a', effect, ignore).leave(long);
    const next = takePart('a', effect, ignore);
    end('done');
    assert.equal(await next.result, 'done');
    assert.equal(started[0]?.aborted, false);
  });

  it('keeps its result for the next attempt, once, if it completes before that one has come', async () => {
    const { effect, started, end } = createEffect();
    const left = takePart('a', effect, ignore);
    left.leave(long);
    end('done');
    await left.result;
    const next = takePart('a', effect, ignore);
    assert.equal(await next.result, 'done');
    assert.equal(started.length, 1);
    const other = createEffect();
    const later = takePart('a', other.effect, ignore);
    other.end('other');
    assert.equal(await later.result, 'other');
  });

  it('starts again for the next attempt if it fails before that one has come', async () => {
    const left = takePart('a', () => Promise.reject(new Error('broken')), ignore);
    left.leave(long);
    await assert.rejects(left.result, /broken/);
    const other = createEffect();
    const next = takePart('a', other.effect, ignore);
    other.end('other');
    assert.equal(await next.result, 'other');
  });

  it('is aborted when no attempt joins it in time, and is then started again', async () => {
    const one = createEffect();
    const left = takePart('a', one.effect, ignore);
    left.leave(1);
    await assert.rejects(left.result, /no further activity attempt came/);
    const other = createEffect();
    const next = takePart('a', other.effect, ignore);
    other.end('other');
    assert.equal(await next.result, 'other');
  });

  it('outlives the attempt that leaves while another waits for it', async () => {
    const { effect, started, end } = createEffect();
    const first = takePart('a', effect, ignore);
    const second = takePart('a', effect, ignore);
    first.leave(0);
    endLeftEffects();
    end('done');
    assert.equal(await second.result, 'done');
    assert.equal(started[0]?.aborted, false);
  });

  it('is aborted by the end of any attempt, and not joined while it cleans up', async () => {
    const cleanedUp = Promise.withResolvers<string>();
    const first = takePart('a', () => cleanedUp.promise, ignore);
    first.end(new Error('cancelled'));
    assert.equal(first.signal.aborted, true);
    const other = createEffect();
    const next = takePart('a', other.effect, ignore);
    other.end('other');
    assert.equal(await next.result, 'other');
    cleanedUp.resolve('clean');
    assert.equal(await first.result, 'clean');
  });

  it('is aborted at a shutdown if no attempt waits for it', async () => {
    const { effect } = createEffect();
    const part = takePart('a', effect, ignore);
    part.leave(long);
    endLeftEffects();
    await assert.rejects(part.result, /the worker is shut down/);
  });
});
