import type {
  AuthorizationV1Api,
  CoreV1Api,
  Exec,
  Informer,
  KubeConfig,
  NetworkingV1Api,
  RequestContext,
  SecurityAuthentication,
  V1Pod,
  Watch,
} from '@kubernetes/client-node';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { LastingRefusal } from '../failure.ts';
import { callApi } from './answers.ts';

/** The connection to a cluster's API, as one namespace sees it. */
export interface Cluster {
  readonly namespace: string;
  readonly config: KubeConfig;
  readonly core: CoreV1Api;
  readonly networking: NetworkingV1Api;
  readonly authorization: AuthorizationV1Api;
  /** Opens WebSockets. */
  readonly sockets: Exec['handler'];
  /** Creates a watch of the namespace's Pods with these labels, which has not begun. It lists them first. Times in its Pods are texts. */
  informOfPods(labelSelector: string, onListed: () => void): Informer<V1Pod>;
}

/** Opens the cluster that KUBECONFIG, `~/.kube/config` or the account of this Pod names. Makes no request. */
export async function openCluster(namespace: string): Promise<Cluster> {
  // Loaded only by those who use it, because it is large.
  const library = await import('@kubernetes/client-node');
  const config = new library.KubeConfig();
  try {
    config.loadFromDefault();
  } catch (cause) {
    const text = 'expected KUBECONFIG to name a readable kubeconfig, got none; correct the variable or the file';
    throw new LastingRefusal(text, { cause, evidence: errorMessage(cause).slice(0, 300) });
  }
  const requests = library.createConfiguration({
    baseServer: new library.ServerConfiguration(serverOf(config), {}),
    authMethods: { default: keepConnections(config) },
  });
  const core = new library.CoreV1Api(requests);
  return {
    namespace,
    config,
    core,
    networking: new library.NetworkingV1Api(requests),
    authorization: new library.AuthorizationV1Api(requests),
    sockets: new library.Exec(config).handler,
    informOfPods: (labelSelector, onListed) => {
      const path = `/api/v1/namespaces/${namespace}/pods`;
      const list = async () => {
        const listed = await callApi(namespace, () => core.listNamespacedPod({ namespace, labelSelector }));
        if (!podList.safeParse(listed).success) throw new Error('expected a list of Pods, got something else');
        onListed();
        return listed;
      };
      return new library.ListWatch(path, guarded(new library.Watch(config)), list, false, labelSelector);
    },
  };
}

/*
 * The forms of a list and of a line of a watch, which the library does not check. What is before the API server, such as a proxy,
 * may answer in another one.
 */
const podList = z.object({ items: z.array(z.object({ metadata: z.object({}) })) });
const change = z.union([
  z.object({ phase: z.literal('ERROR'), object: z.object({}) }),
  z.object({ phase: z.string(), object: z.object({ metadata: z.object({}) }) }),
]);

/**
 * Has a watch report errors of its credentials, too, and leave out lines that are no changes of objects. The library would reject
 * promises without a handler, which would end this process.
 */
function guarded(watch: Watch): Watch {
  const begin = watch.watch.bind(watch);
  watch.watch = (path, query, onChange, onEnd) => {
    const onLine: typeof onChange = (phase, object, line) => {
      if (change.safeParse({ phase, object }).success) onChange(phase, object, line);
    };
    return begin(path, query, onLine, onEnd).catch((error: unknown) => {
      onEnd(error);
      return new AbortController();
    });
  };
  return watch;
}

/** The context that the library makes up, for a cluster on this machine without TLS, where it finds no kubeconfig. */
const madeUpContext = 'loaded-context';

function serverOf(config: KubeConfig): string {
  if (config.getCurrentContext() === madeUpContext) {
    const text =
      'expected KUBECONFIG, ~/.kube/config or the account of a Pod to name a cluster, got none of them; set KUBECONFIG';
    throw new LastingRefusal(text);
  }
  const server = config.getCurrentCluster()?.server;
  if (server !== undefined) return server;
  const text = 'expected KUBECONFIG to name a cluster in its current context, got none; correct the file';
  throw new LastingRefusal(text);
}

/** The time for which connections are made with the same certificates, which may be replaced in their files. */
const sameCertificatesMs = 600_000;

/** Authenticates as the kubeconfig says, and keeps connections open: the library itself would open one for each request. */
function keepConnections(config: KubeConfig): SecurityAuthentication {
  let connections: ReturnType<RequestContext['getDispatcher']>;
  let untilMs = 0;
  return {
    getName: () => config.getName(),
    applySecurityAuthentication: async (request) => {
      await config.applySecurityAuthentication(request);
      if (performance.now() > untilMs) {
        connections = request.getDispatcher();
        untilMs = performance.now() + sameCertificatesMs;
      }
      if (connections !== undefined) request.setDispatcher(connections);
    },
  };
}
