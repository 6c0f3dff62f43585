/** Connects a command to the control plane, and converts what goes wrong to a sentence that says what to do next. */

import type { CliContext } from '../../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../../channels/terminal/signals.ts'
import { type ControlClient, createControlClient } from '../../../../control/client/control-client.ts'
import { PlaneRefusal } from '../../../../control/contract/plane-refusal.ts'
import { sleep } from '../../../../kit/abort.ts'
import { visible } from '../../../../kit/text.ts'
import { createProviderFetch } from '../../../../workspace/net/provider-fetch.ts'
import { withEnvFile } from '../../../env-file.ts'
import { CliExit, commandError, exitCodes } from '../../../exit.ts'
import { type ControlAddress, controlAddress } from './control-address.ts'
import { type OperatorToken, operatorToken } from './operator-token.ts'

export type Control = ControlClient
export type Connected = { readonly control: Control; readonly url: string; readonly signal: AbortSignal }

/** Ctrl-C aborts `signal`; the command then ends with 130 unless it ended well by itself. @throws CliExit */
export async function withControl<T>(
  context: CliContext,
  given: { readonly url?: string },
  use: (control: Control, connected: Omit<Connected, 'control'>) => Promise<T>,
): Promise<T> {
  const place = withEnvFile(context)
  const address = controlAddress(given.url, place.env)
  const token = operatorToken(place)
  context.redactor.register(token.token, 'operator token')
  if (!address.encrypted)
    context.process.stderr.write(`warning: the operator token travels unencrypted to ${address.url}; use https or an ssh tunnel\n`)
  const interrupt = onInterrupt(() => {})
  try {
    return await use(clientOf(address, token, interrupt.signal), { url: address.url, signal: interrupt.signal })
  } catch (error) {
    if (interrupt.signal.aborted) throw new CliExit(exitCodes.cancelled)
    throw explained(error, address, token)
  } finally {
    interrupt.stop()
  }
}

/** A command waits for nobody: a daemon that does not listen is asked once. */
export function clientOf({ url }: Pick<ControlAddress, 'url'>, { token }: Pick<OperatorToken, 'token'>, stop?: AbortSignal): Control {
  return createControlClient({
    url,
    token: () => token,
    fetch: createProviderFetch({ baseUrl: url }),
    sleep,
    random: Math.random,
    attempts: 1,
    // Ctrl-C ends a request that waits for its answer.
    ...(stop ? { stop } : {}),
  })
}

/** Returns the exit code of a command that the control plane refuses. */
export function exitOf({ code }: PlaneRefusal): number {
  return codes[code] ?? exitCodes.error
}

const codes: { readonly [code: string]: number } = {
  unauthorized: exitCodes.denied,
  forbidden: exitCodes.denied,
  budget_exceeded: exitCodes.budget,
  bad_request: exitCodes.usage,
}

/** Whatever is not a refusal, and not an error of the command itself, is an answer that cannot be read. */
function explained(error: unknown, address: ControlAddress, token: OperatorToken): unknown {
  if (error instanceof PlaneRefusal) return new CliExit(exitOf(error), `error: ${visible(sentenceOf(error, address, token))}`)
  if (!(error instanceof SyntaxError) && !(error instanceof TypeError)) return error
  const { url, origin } = address
  return commandError(
    `what answers at ${url} (${origin}) is no control plane of this version: ${visible(error.message)}. Check --url and CONTROLPLANE_API_URL`,
  )
}

/** Where the ids are, for what the daemon does not find. */
const lists: { readonly [kind: string]: string } = {
  task: 'control task list',
  run: 'control run list',
  approval: 'control approvals list --all',
  schedule: 'control schedule list',
  agent: 'control agent list',
}

function sentenceOf({ code, message }: PlaneRefusal, { url, origin }: ControlAddress, token: OperatorToken): string {
  if (code === 'unauthorized')
    return `the control plane at ${url} does not accept the operator token from ${token.origin}: it is wrong, revoked, or of another control plane. On its machine: braidclaw control init --new-token`
  if (code === 'forbidden') return `${message}. The token from ${token.origin} may not do this; an operator token begins with cpo_`
  const [, why] = /cannot be reached(.*)$/s.exec(message) ?? []
  if (code === 'unavailable' && why !== undefined)
    return `no control plane answers at ${url} (${origin})${why.replace(/\.$/, '')}. To start one here: braidclaw control init, then braidclaw control. To use another one: --url or CONTROLPLANE_API_URL`
  const [, kind = ''] = (code === 'not_found' && /there is no (\w+) [^;]+$/.exec(message)) || []
  if (lists[kind] !== undefined) return `${message}. See: braidclaw ${lists[kind]}`
  if (code === 'version_conflict') return `${message}. Look at it again (braidclaw control task show) and repeat the change`
  return message
}
