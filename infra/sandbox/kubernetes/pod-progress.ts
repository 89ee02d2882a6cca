import type { CoreV1Event, V1Pod } from '@kubernetes/client-node';
import type { ImageProgress, ReportImage } from '../image.ts';
import { callApi } from './answers.ts';
import type { Cluster } from './client.ts';

/** The time in which nothing is reported: most Pods run by then, and a report is a write at the Temporal server. */
const quietMs = 5_000;
/** The shortest time between two looks at the events of one Pod, and between those of all Pods: the API server searches for them. */
const lookEveryMs = 10_000;
const looksApartMs = 1_000;
const longestWords = 300;

/** Reports what one Pod waits for on its way to running. */
export interface PodProgress {
  /** Begins a look at the Pod's events, if it is time for one, which reports what has changed. Returns at once. */
  see(pod: V1Pod): void;
  /** Looks at once, and returns what the Pod waits for. */
  look(pod: V1Pod): Promise<ImageProgress>;
  /** Reports that the image is there, if there was a report before, and nothing from then on. */
  arrived(): void;
}

/** Creates what follows Pods with an image, each until it runs. They share the pause between looks. */
export function createPodProgress(open: () => Promise<Cluster>) {
  let nextLookMs = 0;

  async function eventsOf({ metadata, spec }: V1Pod): Promise<readonly CoreV1Event[]> {
    if (spec?.nodeName === undefined) return [];
    const fieldSelector = `involvedObject.uid=${metadata?.uid}`;
    try {
      const { core, namespace } = await open();
      return (await callApi(namespace, () => core.listNamespacedEvent({ namespace, fieldSelector }))).items;
    } catch {
      // A report without them has only what the Pod itself tells. Those who wait make calls of their own, which explain a failure.
      return [];
    }
  }

  return (image: string, report: ReportImage = () => undefined): PodProgress => {
    const beganMs = Date.now();
    let nextMs = beganMs + quietMs;
    let reported = '';
    let isOver = false;

    async function look(pod: V1Pod): Promise<ImageProgress> {
      nextMs = Date.now() + lookEveryMs;
      nextLookMs = Date.now() + looksApartMs;
      const progress = progressOf(pod, image, await eventsOf(pod));
      const text = JSON.stringify(progress);
      if (text !== reported && !isOver) report(progress);
      reported = text;
      return progress;
    }

    return {
      look,
      see: (pod) => {
        if (Date.now() >= Math.max(nextMs, nextLookMs)) void look(pod);
      },
      arrived: () => {
        isOver = true;
        if (reported !== '') report({ image, doing: 'ready' });
      },
    };
  };
}

/** Tells what a Pod waits for, by its events. A node says when it begins to pull an image, and not how far it is. */
export function progressOf(pod: V1Pod, image: string, events: readonly CoreV1Event[]): ImageProgress {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (pod.spec?.nodeName === undefined) {
    return { image, doing: 'waiting for a node', ...at(pod.metadata?.creationTimestamp), ...words(scheduled?.message) };
  }
  const inOrder = events.toSorted((one, other) => timeOf(one) - timeOf(other));
  const pull = pullOf(inOrder);
  if (pull !== undefined) return { image: pull.image, doing: 'pulling', ...at(new Date(timeOf(pull.event))) };
  const warning = inOrder.findLast(({ type }) => type === 'Warning');
  const waiting = pod.status?.containerStatuses?.find(({ state }) => state?.waiting)?.state?.waiting;
  const said = warning ?? waiting;
  return {
    image,
    doing: 'starting',
    ...at(scheduled?.lastTransitionTime),
    ...words([said?.reason, said?.message].filter(Boolean).join(': ')),
  };
}

/** Returns the pull that has begun last, of those that have neither ended nor failed. */
function pullOf(inOrder: readonly CoreV1Event[]) {
  const last = new Map<string, CoreV1Event>();
  for (const event of inOrder) {
    const [, image] = /image "([^"]+)"/.exec(event.message ?? '') ?? [];
    if (image === undefined) continue;
    last.delete(image);
    last.set(image, event);
  }
  return [...last].map(([image, event]) => ({ image, event })).findLast(({ event }) => event.reason === 'Pulling');
}

const timeOf = ({ lastTimestamp, eventTime, metadata }: CoreV1Event): number =>
  Number(new Date(lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? 0));

/** The Pods of a watch hold their times as texts. */
const at = (time: Date | string | undefined) => (time === undefined ? {} : { since: new Date(time).toISOString() });

const words = (text: string | undefined) => (text ? { says: text.slice(0, longestWords) } : {});
