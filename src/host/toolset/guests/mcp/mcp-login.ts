/**
 * Logs in to the MCP servers of a home: it keeps the tokens of each, judges every address of a login, and takes the browser's answer on
 * loopback.
 */

import { lstatSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { FetchLike } from '@modelcontextprotocol/client'
import { readConfigFile } from '../../../../config/text/read-toml-file.ts'
import { listen } from '../../../../http/listen.ts'
import { attempt, errorText } from '../../../../kit/errors.ts'
import { replaceFile } from '../../../../kit/files.ts'
import { isObject, parseJson } from '../../../../kit/json.ts'
import { cut, quote, visible } from '../../../../kit/text.ts'
import {
  type CredentialStore,
  createTokenSource,
  type LoginOptions,
  type McpCredentials,
  revokeTokens,
  type StartedLogin,
  startLogin,
} from '../../../../mcp/client/oauth.ts'
import type { McpClientLogin } from '../../../../mcp/contract.ts'
import type { Redactor } from '../../../../security/redaction/redact.ts'
import { refuse } from '../../../../security/rules.ts'
import { expandHosts } from '../../../../security/targets/host-lists.ts'
import { judgeUrl, type UrlPolicy } from '../../../../security/targets/url.ts'
import { openLibc } from '../../../../workspace/changes/tree/libc.ts'
import { createTurns } from '../../../../workspace/changes/turns.ts'
import { createGuardedFetch } from '../../../../workspace/net/guarded.ts'
import type { JudgeUrl } from '../../../../workspace/net/pin.ts'
import type { Setup } from '../../../api.ts'
import { FailureError } from '../../../failure.ts'
import { serverAddresses } from '../../guarded-get.ts'
import { expanded, type McpServer } from './configured-servers.ts'

/** A server that is reached by HTTP. `login` is absent where a user logs in. */
export type McpLoginServer = { readonly id: string; readonly url: string; readonly login?: McpClientLogin | undefined }

type StoreOptions = { readonly home: string; readonly redactor: Pick<Redactor, 'register'> }

/** Keeps the credentials of one server in a file that only its owner can read. A server with another address or client never gets them. */
export function openCredentials({ home, redactor }: StoreOptions, { id, url: address, login }: McpLoginServer): CredentialStore {
  const url = login ? `${address} as ${login.clientId} of ${login.issuer} for ${login.scope}` : address
  const folder = join(home, 'mcp', 'login', id)
  const file = join(folder, 'credentials.json')
  const turns = createTurns(folder, openLibc)
  const hide = ({ tokens, client }: McpCredentials) => {
    for (const secret of [tokens?.access_token, tokens?.refresh_token, tokens?.id_token, client.secret])
      if (secret !== undefined) redactor.register(secret, `mcp ${id}`)
  }

  return {
    read() {
      const found = readConfigFile(file)
      const value = found.state === 'text' ? parseJson(found.text) : undefined
      if (!isKept(value) || value.url !== url || (lstatSync(file).mode & 0o077) !== 0) return undefined
      hide(value.credentials)
      return value.credentials
    },
    change(work) {
      return turns.take(async () => {
        const credentials = await work(this.read())
        if (credentials === undefined) return void rmSync(file, { force: true })
        hide(credentials)
        replaceFile(file, JSON.stringify({ url, credentials }))
        return credentials
      })
    },
  }
}

function isKept(value: unknown): value is { readonly url: string; readonly credentials: McpCredentials } {
  if (!isObject(value) || typeof value.url !== 'string' || !isObject(value.credentials)) return false
  const { client, issuer } = value.credentials
  return isObject(client) && typeof client.id === 'string' && typeof issuer === 'string'
}

type LoginGuard = { readonly server: McpLoginServer; readonly policy: UrlPolicy }

/** Judges an address that a server, or its authorization server, named: those of others must be public and encrypted. */
function judgeLoginUrl({ server, policy }: LoginGuard, to: { readonly url: string; readonly method: string }): ReturnType<JudgeUrl> {
  if (serverAddresses({ url: server.url, policy }).isOwn(to.url)) return { ok: true }
  return /^http:/i.test(to.url) ? refuse('url.scheme', `${quote(to.url)} is not encrypted; it must be https`) : judgeUrl({ ...to, policy })
}

/** Rejects with the sentence of a refusal. */
export function loginFetch(guard: LoginGuard): FetchLike {
  const { get } = createGuardedFetch({
    judgeUrl: (to) => judgeLoginUrl(guard, to),
    judgeAddress: serverAddresses({ url: guard.server.url, policy: guard.policy }).judgeAddress,
    maxBytes: 1_048_576,
    timeoutMs: 15_000,
  })
  return async (url, { method, headers, body, signal } = {}) => {
    const answer = await get(String(url), {
      method: method ?? 'GET',
      headers: Object.fromEntries(new Headers(headers)),
      body: body?.toString(),
      signal: signal ?? undefined,
      follow: false,
    })
    if (!answer.ok) throw new TypeError(answer.message)
    return new Response(answer.body, { status: answer.status, headers: answer.headers })
  }
}

/** Returns the login of a server that is reached by HTTP, with the variables in its address replaced. */
export function loginOf(server: McpServer, setup: Setup): (StoreOptions & LoginGuard) | undefined {
  const transport = expanded(server, setup)
  if ('why' in transport || transport.kind === 'stdio') return undefined
  const { home } = setup.paths
  const policy = { allowedDomains: expandHosts(setup.config.security.allowedDomains), allowedPorts: setup.config.security.allowedPorts }
  return { home, policy, redactor: setup.redactor, server: { id: server.id, url: transport.url, login: transport.login } }
}

/** Returns what gives the connection to a server its token. A 401 after it needs a login. */
export function tokensFor(server: McpServer, setup: Setup) {
  const login = loginOf(server, setup)
  return (
    login && createTokenSource({ ...login.server, store: openCredentials(login, login.server), fetch: loginFetch(login), now: Date.now })
  )
}

export type McpLoginOptions = StoreOptions &
  LoginGuard &
  Pick<LoginOptions, 'client' | 'scope'> & {
    /** Shows the page to the user. @returns the address at which a browser elsewhere ended, if the user pastes it */
    readonly show: (address: string, signal: AbortSignal) => Promise<string | undefined>
    readonly signal: AbortSignal
  }

const loginMs = 600_000

/** Waits until the user agreed in the browser. @throws FailureError that says why nobody is logged in */
export async function loginMcp(options: McpLoginOptions): Promise<void> {
  const { server, policy } = options
  const store = openCredentials(options, server)
  const over = new AbortController()
  const signal = AbortSignal.any([options.signal, over.signal, AbortSignal.timeout(loginMs)])
  const answered = Promise.withResolvers<URLSearchParams>()
  let login: StartedLogin | undefined
  const redirect = openRedirect(store.read()?.client.redirect, (answer) => {
    const isAnswer = login?.isAnswer(answer) ?? false
    if (isAnswer) answered.resolve(answer)
    return isAnswer
  })
  try {
    login = await startLogin({
      ...options,
      store,
      url: server.url,
      fetch: loginFetch(options),
      now: Date.now,
      redirect: redirect.url,
      assertPublic: (address) => {
        const verdict = judgeLoginUrl({ server, policy }, { url: address.split('?')[0] ?? '', method: 'GET' })
        if (!verdict.ok) throw new Error(`no browser is sent there: ${verdict.reason}`)
      },
    })
    signal.addEventListener('abort', () => answered.reject(new Error(`no login within ${loginMs / 60_000} minutes`)), { once: true })
    void options.show(login.address, signal).then((pasted) => {
      if (pasted) answered.resolve(URL.parse(pasted.trim())?.searchParams ?? new URLSearchParams())
    }, answered.reject)
    await login.finish(await answered.promise)
  } catch (error) {
    throw new FailureError('error', `${server.id}: no login: ${cut(visible(errorText(error)), 500)}`)
  } finally {
    over.abort()
    await redirect.close()
  }
}

/** Listens where the last login did, because some servers accept only the port that they registered. `take` tells whether it was the answer. */
function openRedirect(earlier: string | undefined, take: (answer: URLSearchParams) => boolean) {
  const open = (port: number) =>
    listen({
      hostname: '127.0.0.1',
      port,
      failed: () => undefined,
      answer(request) {
        const { pathname, searchParams } = new URL(request.url)
        // Any page can send a browser here; only the server of this login knows its state.
        if (pathname !== '/callback' || !take(searchParams)) return new Response('This is not the answer to a login.\n', { status: 404 })
        return new Response('You can close this window and go back to BraidClaw.\n', { headers: { 'referrer-policy': 'no-referrer' } })
      },
    })
  const listening = attempt(() => open(Number(URL.parse(earlier ?? '')?.port ?? 0))) ?? open(0)
  return { url: `http://127.0.0.1:${listening.port}/callback`, close: () => listening.finish(1_000) }
}

/** Revokes the tokens, and forgets them and the client. `why` says why they could not be revoked. */
export async function logoutMcp(options: StoreOptions & LoginGuard) {
  const answer: { wasLoggedIn: boolean; why?: string | undefined } = { wasLoggedIn: false }
  await openCredentials(options, options.server).change(async (credentials) => {
    if (credentials?.tokens === undefined) return undefined
    const client = { ...credentials.client, secret: credentials.client.secret ?? options.server.login?.secret }
    Object.assign(answer, { wasLoggedIn: true, why: await revokeTokens({ ...credentials, client }, loginFetch(options)) })
  })
  return answer
}
