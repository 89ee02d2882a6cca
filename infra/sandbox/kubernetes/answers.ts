import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { ThrottledFailure } from '../../../workflows/contracts/throttled-failure.ts';
import { LastingRefusal, SandboxFailure, type SandboxFailureType } from '../failure.ts';

const requestMs = 30_000;
const tooMany = 429;
const invalid = 422;
const firstOfServer = 500;
const status = z.object({ message: z.string() });
const withRetryAfter = z.object({ headers: z.object({ 'retry-after': z.coerce.number().nonnegative() }) });

/** An answer of the API server, and what it is evidence of. */
interface Refusal {
  /** The HTTP status. Default: any that blames the request. */
  readonly code?: number;
  /** The words of the answer. Default: any. */
  readonly words?: RegExp;
  /** Default: SandboxUnavailable. */
  readonly type?: SandboxFailureType;
  /** Whether the same request will be refused later, too. */
  readonly isLasting?: true;
  readonly text: (namespace: string) => string;
}

/** The words of a webhook, of a ValidatingAdmissionPolicy and of a LimitRange, which answer with several codes. */
const ofPolicy = /admission webhook .* denied the request|ValidatingAdmissionPolicy .* denied|per (Container|Pod) is/s;

/** The refusals of any request. The first that fits counts. */
const refusals: readonly Refusal[] = [
  {
    code: 401,
    isLasting: true,
    text: () => 'the cluster does not accept the credentials of this account; renew its kubeconfig',
  },
  {
    // Operators write these policies, which may look at anything in a Pod.
    words: ofPolicy,
    text: (namespace) =>
      `a policy of namespace ${namespace} forbids this sandbox; change the policy, or use another namespace`,
  },
  {
    code: 403,
    words: /exceeded quota|status unknown for quota/i,
    text: (namespace) =>
      `the quota of namespace ${namespace} is used up; it is tried again, or raise the ResourceQuota`,
  },
  {
    code: 403,
    words: /violates PodSecurity/i,
    isLasting: true,
    text: (namespace) =>
      `the Pod Security of namespace ${namespace} forbids sandboxes; label it pod-security.kubernetes.io/enforce=baseline`,
  },
  {
    code: 403,
    words: /RuntimeClass .* not found/i,
    text: () => 'the cluster has no such RuntimeClass; correct TEMPER_KUBERNETES_RUNTIME_CLASS',
  },
  {
    code: 403,
    words: /unable to create new content .* being terminated/i,
    text: (namespace) => `the namespace ${namespace} is being deleted; use another`,
  },
  {
    code: 403,
    words: /cannot \S+ resource/,
    text: (namespace) =>
      `this account lacks a right that sandboxes need in namespace ${namespace}; give it the one in the evidence`,
  },
  {
    code: 403,
    text: (namespace) => `the cluster forbids what sandboxes need in namespace ${namespace}; see the evidence`,
  },
];

export const needsImageVolumes =
  'the cluster mounts no images as volumes, which sandboxes need; use Kubernetes 1.35 or later, or turn its gate ImageVolume on';

/** The refusals to create an object, beside these. */
const creationRefusals: readonly Refusal[] = [
  { code: 404, text: (namespace) => `the namespace ${namespace} does not exist; create it with kubectl` },
  { code: invalid, words: /must specify a volume type/, isLasting: true, text: () => needsImageVolumes },
  {
    code: invalid,
    type: 'UnsupportedTask',
    text: () => 'the cluster refuses the Pod of this task as invalid; correct the task, or the settings of Kubernetes',
  },
];

/** The HTTP status of an error that the API server answered with. */
export function apiStatus(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'number' ? error.code : undefined;
}

/** Returns undefined for an object that does not exist. */
export function orIfMissing(error: unknown): undefined {
  if (apiStatus(error) === 404) return undefined;
  throw error;
}

/**
 * Makes one request about a namespace. Throws `SandboxUnavailable` if the API server does not answer, fails or does not allow the
 * request, a `ThrottledFailure` if it refuses for now, and passes on what else it answers.
 */
export async function callApi<T>(namespace: string, request: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(unavailable(`no answer within ${requestMs / 1000} s`)), requestMs);
  try {
    return await Promise.race([request(), late.promise]);
  } catch (cause) {
    if (cause instanceof TemperFailure) throw cause;
    const code = apiStatus(cause);
    if (code === undefined || code >= firstOfServer) throw unavailable(apiMessage(cause), cause);
    throw code === tooMany ? overloaded(cause) : explained(refusals, namespace, cause);
  } finally {
    clearTimeout(timer);
  }
}

/** Explains why the API server did not create an object. Returns an error that is explained already as it is. */
export const unmade = (namespace: string, error: unknown): unknown => explained(creationRefusals, namespace, error);

/** Whether the rules of a namespace or cluster forbid a Pod for what it may do, rather than for its size or for now. */
export const isForbidden = (error: unknown): error is SandboxFailure & { readonly evidence: string } =>
  error instanceof SandboxFailure && forbids.test(error.evidence ?? '');

const forbids = /violates PodSecurity|admission webhook .* denied the request|ValidatingAdmissionPolicy .* denied/is;

/** Returns the failure that an answer is evidence of, or the answer itself. */
function explained(table: readonly Refusal[], namespace: string, cause: unknown): unknown {
  const [answered, evidence] = [apiStatus(cause), apiMessage(cause)];
  if (answered === undefined) return cause;
  const found = table.find(
    ({ code = answered, words }) => code === answered && (words === undefined || words.test(evidence)),
  );
  if (found === undefined) return cause;
  const { type = 'SandboxUnavailable', isLasting, text } = found;
  const details = { cause, evidence };
  return isLasting ? new LastingRefusal(text(namespace), details) : new SandboxFailure(type, text(namespace), details);
}

function unavailable(evidence: string, cause?: unknown): SandboxFailure {
  const text = 'expected the Kubernetes API to answer, got none; check the kubeconfig and `kubectl get pods`';
  return new SandboxFailure('SandboxUnavailable', text, { cause, evidence });
}

/** Explains a refusal for now, with the pause in seconds that the API server asked for. */
function overloaded(cause: unknown): ThrottledFailure {
  const seconds = withRetryAfter.safeParse(cause).data?.headers['retry-after'];
  const text = `the Kubernetes API takes no more requests for now: ${apiMessage(cause)}`;
  return new ThrottledFailure(text, seconds === undefined ? null : seconds * 1000, { cause });
}

/** The API server's own words in an error. */
function apiMessage(error: unknown): string {
  const body = error instanceof Error && 'body' in error ? error.body : undefined;
  try {
    return status.parse(typeof body === 'string' ? JSON.parse(body) : body).message;
  } catch {
    // The library drops the body of this one, and lists its headers.
    return apiStatus(error) === 401 ? 'Unauthorized' : errorMessage(error).slice(0, 500);
  }
}
