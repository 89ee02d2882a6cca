import { type Interceptor, status } from '@grpc/grpc-js';
import { defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';

/** The call with which the SDK waits for the end of a workflow. */
const waits = /\/GetWorkflowExecutionHistory$/;

const usual = makeGrpcRetryInterceptor(defaultGrpcRetryOptions());
const patient = makeGrpcRetryInterceptor(retriesOfWaits());

/**
 * Retries calls as the SDK does, and a wait for the end of a workflow also if the server itself runs out of time, as a busy one does.
 * A wait that the caller has limited ends with its limit.
 */
export const patientWaits: Interceptor = (options, nextCall) => {
  const isWait = waits.test(options.method_definition?.path ?? '') && options.deadline === undefined;
  return (isWait ? patient : usual)(options, nextCall);
};

function retriesOfWaits() {
  const { delayFunction, retryableDecider } = defaultGrpcRetryOptions();
  return {
    delayFunction,
    retryableDecider: (attempt: number, answer: Parameters<typeof retryableDecider>[1]): boolean =>
      retryableDecider(
        attempt,
        answer.code === status.DEADLINE_EXCEEDED ? { ...answer, code: status.UNAVAILABLE } : answer,
      ),
  };
}
