/**
 * Logs in to the MCP servers of a home: it keeps the tokens of each, judges every address of a login, and takes the browser's answer on
 * loopback.
 */

import { chmodSync, lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfigFile } from '../../../../config/text/read-toml-file.ts'
import { listen } from '../../../../http/listen.ts'
import { errorText } from '../../../../kit/errors.ts'
import { isObject, parseJson } from '../../../../kit/json.ts'
import { cut, quote, visible } from '../../../../kit/text.ts'
import {
  type CredentialStore,
  createTokenSource,
  type LoginFetch,
  type McpCredentials,
  type McpOAuthClient,
  revokeTokens,
  startLogin,
} from '../../../../mcp/client/oauth.ts'
import type { Redactor } from '../../../../security/redaction/redact.ts'
import { refuse } from '../../../../security/rules.ts'
import { expandHosts } from '../../../../security/targets/host-lists.ts'
import { judgeUrl, type UrlPolicy, type UrlVerdict } from '../../../../security/targets/url.ts'
import { openLibc } from '../../../../workspace/changes/tree/libc.ts'
import { createTurns } from '../../../../workspace/changes/turns.ts'
import { createGuardedFetch } from '../../../../workspace/net/guarded.ts'
import type { Setup } from '../../../api.ts'
import { FailureError } from '../../../failure.ts'
import { serverAddresses } from '../../guarded-get.ts'
import { expanded, type McpServer } from './configured-servers.ts'

/** A server that is reached by HTTP. */
export type McpLoginServer = { readonly id: string; readonly url: string }

type StoreOptions = { readonly home: string; readonly redactor: Pick<Redactor, 'register'> }

const folderOf = (home: string, id: string) => join(home, 'mcp', 'login', id)

/** Keeps the credentials of one server in a file that only its owner can read. A server with another address never gets them. */
export function openCredentials({ home, redactor }: StoreOptions, { id, url }: McpLoginServer): CredentialStore {
  const folder = folderOf(home, id)
  const file = join(folder, 'credentials.json')
  const turns = createTurns(folder, openLibc)
  const hide = ({ tokens, client }: McpCredentials) => {
    for (const secret of [tokens?.access_token, tokens?.refresh_token, tokens?.id_token, client.secret])
      if (secret !== undefined) redactor.register(secret, `mcp ${id}`)
  }

  function read(): McpCredentials | undefined {
    const found = readConfigFile(file)
    const value = found.state === 'text' ? parseJson(found.text) : undefined
    if (!isKept(value) || value.url !== url || (lstatSync(file).mode & 0o077) !== 0) return undefined
    hide(value.credentials)
    return value.credentials
  }

  return {
    read,
    change: (work) =>
      turns.take(async () => {
        const credentials = await work(read())
        if (credentials === undefined) return void rmSync(file, { force: true })
        hide(credentials)
        const draft = `${file}.${crypto.randomUUID()}`
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        writeFileSync(draft, JSON.stringify({ url, credentials }), { flag: 'wx', mode: 0o600, flush: true })
        chmodSync(draft, 0o600)
        renameSync(draft, file)
        return credentials
      }),
  }
}

function isKept(value: unknown): value is { readonly url: string; readonly credentials: McpCredentials } {
  if (!isObject(value) || typeof value.url !== 'string' || !isObject(value.credentials)) return false
  const { client, issuer } = value.credentials
  return isObject(client) && typeof client.id === 'string' && typeof issuer === 'string'
}

type LoginGuard = { readonly server: McpLoginServer; readonly policy: UrlPolicy }

/** Judges an address that a server, or its authorization server, named: those of others must be public and encrypted. */
function judgeLoginUrl(
  { server: { url: own }, policy }: LoginGuard,
  to: { readonly url: string; readonly method: string },
): UrlVerdict | { ok: true } {
  if (serverAddresses({ url: own, policy }).isOwn(to.url)) return { ok: true }
  return /^http:/i.test(to.url) ? refuse('url.scheme', `${quote(to.url)} is not encrypted; it must be https`) : judgeUrl({ ...to, policy })
}

export function loginFetch({ server, policy }: LoginGuard): LoginFetch {
  const { get } = createGuardedFetch({
    judgeUrl: (to) => judgeLoginUrl({ server, policy }, to),
    judgeAddress: serverAddresses({ url: server.url, policy }).judgeAddress,
    maxBytes: 1_048_576,
    timeoutMs: 15_000,
  })
  return async (url, { method, headers, body, signal } = {}) => {
    const answer = await get(String(url), {
      method: method ?? 'GET',
      headers: Object.fromEntries(new Headers(headers)),
      body: body === undefined || body === null ? undefined : String(body),
      ...(signal ? { signal } : {}),
      follow: false,
    })
    if (!answer.ok) throw new TypeError(answer.message)
    const hasNoBody = [101, 204, 205, 304].includes(answer.status)
    return new Response(hasNoBody ? null : answer.body, { status: answer.status, headers: pickHeaders(answer.headers) })
  }
}

/** The body is unpacked already, so its length and packing are left out. */
function pickHeaders(headers: { readonly [name: string]: string }): [string, string][] {
  return ['content-type', 'location', 'www-authenticate'].flatMap((name) =>
    headers[name] ? [[name, headers[name]] as [string, string]] : [],
  )
}

/** Returns the login of a server that is reached by HTTP, with the variables in its address replaced. */
export function loginOf(server: McpServer, setup: Setup): (StoreOptions & LoginGuard) | undefined {
  const transport = expanded(server, setup)
  if ('why' in transport || transport.kind === 'stdio') return undefined
  const { home } = setup.paths
  const policy = { allowedDomains: expandHosts(setup.config.security.allowedDomains), allowedPorts: setup.config.security.allowedPorts }
  return { home, policy, redactor: setup.redactor, server: { id: server.id, url: transport.url } }
}

/** Returns what gives the connection to a server its token. A 401 after it needs a login. */
export function tokensFor(server: McpServer, setup: Setup) {
  const login = loginOf(server, setup)
  return login && createTokenSource({ store: openCredentials(login, login.server), fetch: loginFetch(login), now: Date.now })
}

export type McpLoginOptions = StoreOptions &
  LoginGuard & {
    readonly client?: McpOAuthClient | undefined
    readonly scope?: string | undefined
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
  const redirect = openRedirect(store.read()?.client.redirect, answered.resolve)
  try {
    const login = await startLogin({
      store,
      url: server.url,
      fetch: loginFetch(options),
      now: Date.now,
      redirect: redirect.url,
      client: options.client,
      scope: options.scope,
      assertPublic: (address) => {
        const verdict = judgeLoginUrl({ server, policy }, { url: address.split('?')[0] ?? '', method: 'GET' })
        if (!verdict.ok) throw new Error(`no browser is sent there: ${verdict.reason}`)
      },
    })
    redirect.accept(login.isAnswer)
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

/** Listens where the last login did, because some servers accept only the port that they registered. */
function openRedirect(earlier: string | undefined, take: (answer: URLSearchParams) => void) {
  const state: { isAnswer: (answer: URLSearchParams) => boolean } = { isAnswer: () => false }
  const open = (port: number) =>
    listen({
      hostname: '127.0.0.1',
      port,
      failed: () => undefined,
      answer(request) {
        const { pathname, searchParams } = new URL(request.url)
        // Any page can send a browser here; only the server of this login knows its state.
        if (pathname !== '/callback' || !state.isAnswer(searchParams))
          return new Response('This is not the answer to a login.\n', { status: 404 })
        take(searchParams)
        return new Response('You can close this window and go back to BraidClaw.\n', { headers: { 'referrer-policy': 'no-referrer' } })
      },
    })
  const listening = openFirst(open, Number(URL.parse(earlier ?? '')?.port ?? 0))
  return {
    url: `http://127.0.0.1:${listening.port}/callback`,
    accept: (isAnswer: (answer: URLSearchParams) => boolean) => void Object.assign(state, { isAnswer }),
    close: () => listening.finish(1_000),
  }
}

function openFirst<T>(open: (port: number) => T, wanted: number): T {
  try {
    return open(wanted)
  } catch {
    return open(0)
  }
}

/** Revokes the tokens, and forgets them and the client. @returns why they could not be revoked; undefined when they were, or there were none */
export async function logoutMcp(
  options: StoreOptions & LoginGuard,
): Promise<{ readonly wasLoggedIn: boolean; readonly why?: string | undefined }> {
  const answer: { wasLoggedIn: boolean; why?: string | undefined } = { wasLoggedIn: false }
  await openCredentials(options, options.server).change(async (credentials) => {
    if (credentials?.tokens === undefined) return undefined
    Object.assign(answer, { wasLoggedIn: true, why: await revokeTokens(credentials, loginFetch(options)) })
  })
  return answer
}
