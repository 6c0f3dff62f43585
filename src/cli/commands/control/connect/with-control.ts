/**
 * Connects a command to the control plane: finds its address and the operator token, each with the place it came from, and converts what goes
 * wrong to a sentence that says what to do next.
 */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../../channels/terminal/signals.ts'
import { readConfigFile } from '../../../../config/text/read-toml-file.ts'
import { type ControlClient, createControlClient } from '../../../../control/client/control-client.ts'
import { PlaneRefusal } from '../../../../control/contract/plane-refusal.ts'
import type { Environment, HostContext } from '../../../../host/api.ts'
import { isLoopback } from '../../../../http/listen.ts'
import { sleep } from '../../../../kit/abort.ts'
import { visible } from '../../../../kit/text.ts'
import { createProviderFetch } from '../../../../workspace/net/provider-fetch.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../../exit.ts'
import { withEnvFile } from '../../../server-files.ts'

export type Control = ControlClient

/** Ctrl-C aborts `signal`. */
export type Connected = { readonly url: string; readonly signal: AbortSignal }

/** Looks for the token at the first request. Ctrl-C ends the command with 130 unless it ended well by itself. @throws CliExit */
export async function withControl<T>(
  context: CliContext,
  given: { readonly url?: string },
  use: (control: Control, connected: Connected) => Promise<T>,
): Promise<T> {
  const place = withEnvFile(context)
  const address = controlAddress(given.url, place.env)
  const found = findToken(context, place, address)
  using interrupt = onInterrupt(() => {})
  try {
    return await use(clientOf(address, found.token, interrupt.signal), { url: address.url, signal: interrupt.signal })
  } catch (error) {
    if (interrupt.signal.aborted) throw new CliExit(exitCodes.cancelled)
    throw found.failure() ?? explained(error, address, found.origin())
  }
}

/** `failure`: why there is no token, which the client reports as a server out of reach. */
function findToken(context: CliContext, place: TokenPlace, address: ControlAddress) {
  const known: { token?: OperatorToken; failure?: unknown } = {}

  function find(): OperatorToken {
    const token = operatorToken(place)
    context.redactor.register(token.token, 'operator token')
    if (!address.encrypted)
      context.process.stderr.write(`warning: the operator token travels unencrypted to ${address.url}; use https or an ssh tunnel\n`)
    return token
  }

  function token(): string {
    try {
      known.token ??= find()
      return known.token.token
    } catch (error) {
      known.failure = error
      throw error
    }
  }
  return { token, failure: () => known.failure, origin: () => known.token?.origin ?? variable }
}

/** Makes the client. A command asks a daemon that does not listen only once. */
export function clientOf({ url }: Pick<ControlAddress, 'url'>, token: () => string, stop?: AbortSignal): Control {
  return createControlClient({
    url,
    token,
    fetch: createProviderFetch({ baseUrl: url }),
    sleep,
    random: Math.random,
    attempts: 1,
    // Ctrl-C ends a request that waits for its answer.
    stop,
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

/** Returns the error to show. One that is neither a refusal nor an error of the command itself comes from an answer that cannot be read. */
function explained(error: unknown, address: ControlAddress, tokenOrigin: string): unknown {
  if (error instanceof PlaneRefusal) return new CliExit(exitOf(error), `error: ${visible(sentenceOf(error, address, tokenOrigin))}`)
  if (!(error instanceof SyntaxError) && !(error instanceof TypeError)) return error
  const { url, origin } = address
  return commandError(
    `the server at ${url} (${origin}) is not a control plane of this version: ${visible(error.message)}. Check --url and CONTROLPLANE_API_URL`,
  )
}

/** Names the command that lists the ids, for an id that the daemon does not find. */
const lists: { readonly [kind: string]: string } = {
  task: 'control task list',
  run: 'control run list',
  approval: 'control approvals list --all',
  schedule: 'control schedule list',
  agent: 'control agent list',
}

function sentenceOf({ code, message }: PlaneRefusal, { url, origin }: ControlAddress, tokenOrigin: string): string {
  if (code === 'unauthorized')
    return `the control plane at ${url} does not accept the operator token from ${tokenOrigin}: it is wrong, revoked, or of another control plane. On its machine: braidclaw control init --new-token`
  if (code === 'forbidden') return `${message}. The token from ${tokenOrigin} may not do this; an operator token begins with cpo_`
  const [, why] = /cannot be reached(.*)$/s.exec(message) ?? []
  if (code === 'unavailable' && why !== undefined)
    return `no control plane answers at ${url} (${origin})${why.replace(/\.$/, '')}. To start one here: braidclaw control init, then braidclaw control. To use another one: --url or CONTROLPLANE_API_URL`
  const [, kind = ''] = (code === 'not_found' && /there is no (\w+) [^;]+$/.exec(message)) || []
  if (lists[kind] !== undefined) return `${message}. See: braidclaw ${lists[kind]}`
  if (code === 'version_conflict') return `${message}. Read it again (braidclaw control task show) and repeat the change`
  return message
}

/** `origin` names the flag or variable that gave the address. */
type ControlAddress = { readonly url: string; readonly origin: string; readonly encrypted: boolean }

/** @throws CliExit 2 unless it is the address of a server */
export function controlAddress(given: string | undefined, env: Environment): ControlAddress {
  const { text, origin } = chosen(given, env)
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw usageError(`${origin} ${JSON.stringify(text)} is not an http(s) address; write one like http://127.0.0.1:3100`)
  if (url.username !== '' || url.password !== '')
    throw usageError(`${origin}: an address with a password is refused; the token comes from a file or CONTROLPLANE_OPERATOR_TOKEN`)
  if (url.search !== '' || url.hash !== '') throw usageError(`${origin} ${JSON.stringify(text)}: leave out what begins with "?" or "#"`)
  return {
    url: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    origin,
    encrypted: url.protocol === 'https:' || isLoopback(url.hostname),
  }
}

function chosen(given: string | undefined, env: Environment): { readonly text: string; readonly origin: string } {
  if (given !== undefined) return { text: given, origin: '--url' }
  if (env.CONTROLPLANE_API_URL) return { text: env.CONTROLPLANE_API_URL, origin: 'CONTROLPLANE_API_URL' }
  const port = env.CONTROLPLANE_API_PORT
  return port
    ? { text: `http://127.0.0.1:${port}`, origin: 'CONTROLPLANE_API_PORT' }
    : { text: 'http://127.0.0.1:3100', origin: 'the default address' }
}

/** `origin` names the variable or the file. */
type OperatorToken = { readonly token: string; readonly origin: string }

type TokenPlace = Pick<HostContext, 'env' | 'home'>

const variable = 'CONTROLPLANE_OPERATOR_TOKEN'

/** Returns the file in which `control init` stores the first token. */
export function operatorTokenFile({ home }: Pick<HostContext, 'home'>): string {
  return join(home, 'control', 'operator.token')
}

/** @returns undefined when there is none. @throws CliExit when the file is there but cannot be used */
export function knownOperatorToken(place: TokenPlace): OperatorToken | undefined {
  const token = place.env[variable]?.trim()
  if (token) return { token, origin: variable }
  const path = operatorTokenFile(place)
  const stored = secretIn(path)
  return stored === undefined ? undefined : { token: stored, origin: path }
}

/** @throws CliExit that says where a token is looked for and how to get one */
export function operatorToken(place: TokenPlace): OperatorToken {
  const found = knownOperatorToken(place)
  if (found) return found
  throw usageError(
    `no operator token: ${variable} is not set, and ${operatorTokenFile(place)} does not exist. On the machine of the control plane: braidclaw control init. On another one: copy its operator.token to that path (mode 600)`,
  )
}

/**
 * Reads a secret from a file that only its owner can read. A file that is named by a flag has to be there.
 * @throws CliExit when it cannot be used
 */
export function secretIn(path: string, flag?: string): string | undefined {
  const read = readConfigFile(path)
  if (read.state === 'missing' && flag === undefined) return undefined
  if (read.state === 'missing') throw usageError(`${flag} ${path}: the file does not exist`)
  if (read.state === 'unusable') throw commandError(`${path} ${read.why}`)
  if ((statSync(path).mode & 0o077) !== 0)
    throw commandError(`${path}: others can read this secret; run: chmod 600 ${path}, and replace the secret if they did`)
  const secret = read.text.trim()
  if (!/^[\x21-\x7e]+$/.test(secret)) throw commandError(`${path} holds no token; it has to be one line such as cpo_… or cpa_…`)
  return secret
}
