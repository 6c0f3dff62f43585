/**
 * Logs in to an MCP server by OAuth 2.1 and keeps its access token fresh. The parts of the SDK do the protocol; its `auth` is not used, because
 * it prints to the console and starts a second login by itself.
 */

import { createPrivateKey } from 'node:crypto'
import {
  type AuthorizationServerMetadata,
  type AuthProvider,
  ClientCredentialsProvider,
  checkResourceAllowed,
  computeScopeUnion,
  discoverOAuthServerInfo,
  exchangeAuthorization,
  extractWWWAuthenticateParams,
  type FetchLike,
  fetchToken,
  isHttpsUrl,
  OAuthError,
  type OAuthTokens,
  PrivateKeyJwtProvider,
  refreshAuthorization,
  registerClient,
  resourceUrlFromServerUrl,
  selectClientAuthMethod,
  startAuthorization,
  UnauthorizedError,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client'
import { errorText } from '../../kit/errors.ts'
import { quote } from '../../kit/text.ts'
import type { McpClientLogin } from '../contract.ts'

/** `secret` belongs to a client that was registered by hand. `redirect` is the address that the server registered. */
export type McpOAuthClient = { readonly id: string; readonly secret?: string; readonly authMethod?: string; readonly redirect?: string }

/** Everything that a login leaves behind. `tokens` is absent after they were refused. */
export type McpCredentials = {
  readonly client: McpOAuthClient
  /** The address of the authorization server that gave the tokens; nobody else gets them, except the MCP server. */
  readonly issuer: string
  readonly metadata?: AuthorizationServerMetadata
  readonly resource?: string
  readonly scope?: string
  readonly tokens?: OAuthTokens
  /** In milliseconds since 1970; absent when the server did not say. */
  readonly expires?: number
}

export type CredentialStore = {
  read(): McpCredentials | undefined
  /** Stores what the work returns. No other process changes the credentials meanwhile. @throws what the work throws */
  change(work: (current: McpCredentials | undefined) => Promise<McpCredentials | undefined>): Promise<McpCredentials | undefined>
}

/** `fetch` judges every address, and returns a redirect as the answer: the SDK follows it only within an origin. */
type Ports = { readonly store: CredentialStore; readonly fetch: FetchLike; readonly now: () => number }

/** `login` is absent where a user logs in. */
type TokenSourceOptions = Ports & { readonly url: string; readonly login?: McpClientLogin | undefined }

/**
 * Gives the transports of the SDK their token. It renews a token that soon expires, and one that the server refuses. @throws ClientLoginError
 * when a client without a user gets none
 */
export function createTokenSource({ store, fetch, now, url, login }: TokenSourceOptions): AuthProvider {
  let last: string | undefined

  /** Only one of all processes renews a token: servers that rotate refresh tokens treat a second use as theft. */
  async function renew(): Promise<OAuthTokens | undefined> {
    const refused = last
    const renewed = await store.change(async (current) => {
      const { tokens } = current ?? {}
      if (tokens && tokens.access_token !== refused) return current
      if (login) return logInAlone({ url, login, fetch, now })
      if (!current || !tokens) return current
      if (tokens.refresh_token === undefined) return withTokens(current)
      try {
        const renewed = await refreshAuthorization(current.issuer, {
          metadata: current.metadata,
          clientInformation: informationOf(current.client),
          refreshToken: tokens.refresh_token,
          resource: current.resource,
          fetchFn: fetch,
        })
        return withTokens(current, { scope: tokens.scope, ...renewed }, now())
      } catch (error) {
        if (error instanceof OAuthError && final.includes(error.code)) return withTokens(current)
        throw error
      }
    })
    return renewed?.tokens
  }

  return {
    async token() {
      const current = store.read()
      const { tokens, expires = Number.POSITIVE_INFINITY } = current ?? {}
      last = tokens?.access_token
      const early = Math.min(60_000, (tokens?.expires_in ?? 0) * 100)
      if (expires - early > now() || tokens === undefined) return last
      try {
        last = (await renew())?.access_token
      } catch (error) {
        if (expires <= now()) throw error
      }
      return last
    },
    async onUnauthorized() {
      if ((await renew()) === undefined) throw new UnauthorizedError('a login is needed')
    },
  }
}

/** Says why a client without a user got no token, and what to check. */
export class ClientLoginError extends Error {}

const algorithms: { readonly [curve: string]: string } = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512', Ed25519: 'EdDSA' }

/** Logs in as a client. @throws ClientLoginError */
async function logInAlone({ url, login, fetch, now }: Omit<Ports, 'store'> & { readonly url: string; readonly login: McpClientLogin }) {
  const { clientId, issuer: expectedIssuer, proof, variable, secret = '' } = login
  try {
    const { wanted, ...found } = await findAuthorization(url, fetch)
    const scope = login.scope || wanted
    const client = { clientId, expectedIssuer, scope }
    const jwk = proof === 'key' ? createPrivateKey(secret).export({ format: 'jwk' }) : undefined
    const provider = jwk
      ? new PrivateKeyJwtProvider({ ...client, privateKey: { ...jwk }, algorithm: algorithms[jwk.crv ?? ''] ?? 'RS256' })
      : new ClientCredentialsProvider({ ...client, clientSecret: secret })
    const { metadata, resource } = found
    const tokens = await fetchToken(provider, found.issuer, { metadata, resource, scope, fetchFn: fetch })
    return withTokens({ ...found, client: { id: clientId }, scope: tokens.scope ?? scope }, tokens, now())
  } catch (error) {
    const answer = error instanceof OAuthError ? `${expectedIssuer} refused it: ` : ''
    throw new ClientLoginError(
      `the client ${quote(clientId)} got no token: ${answer}${errorText(error)}; check "auth" of the server and the variable ${variable}`,
    )
  }
}

/** The answers of a token endpoint that no second try changes. */
const final = ['invalid_grant', 'invalid_client', 'unauthorized_client']

/** Without tokens: they were refused. */
function withTokens(current: McpCredentials, tokens?: OAuthTokens, now = 0): McpCredentials {
  const expires = tokens?.expires_in === undefined ? undefined : now + tokens.expires_in * 1_000
  return { ...current, tokens, expires }
}

function informationOf({ id, secret, authMethod }: McpOAuthClient) {
  return { client_id: id, client_secret: secret, token_endpoint_auth_method: authMethod }
}

export type LoginOptions = Ports & {
  /** The address of the MCP server. */
  readonly url: string
  /** The address on loopback to which the browser is sent back. */
  readonly redirect: string
  /** A client that was registered by hand, or the https address of a client metadata document. */
  readonly client?: McpOAuthClient
  /** Asked for besides the scopes that the last login got. */
  readonly scope?: string
  /** @throws Error for an address that no browser may be sent to */
  readonly assertPublic: (address: string) => void
}

export type StartedLogin = {
  /** The page on which the user agrees. */
  readonly address: string
  /** Tells whether these parameters answer this login: nobody else knows its state. */
  isAnswer(answer: URLSearchParams): boolean
  /** Exchanges the code for tokens and stores them. @throws Error that says why not; then nothing was stored */
  finish(answer: URLSearchParams): Promise<void>
}

/** Finds the authorization server and prepares the page for the user. @throws Error that says why there can be no login */
export async function startLogin(options: LoginOptions): Promise<StartedLogin> {
  const { url, redirect, fetch, store } = options
  const { issuer, metadata, resource, wanted } = await findAuthorization(url, fetch)
  if (metadata !== undefined && !metadata.code_challenge_methods_supported?.includes('S256'))
    throw new Error(`the authorization server ${issuer} does not support PKCE (S256), without which another program could take the login`)
  const earlier = store.read()
  const asked = computeScopeUnion(wanted, options.scope, earlier?.issuer === issuer ? earlier.scope : undefined)
  // A server that gives refresh tokens only for this scope says so.
  const scope = asked && metadata?.scopes_supported?.includes('offline_access') ? computeScopeUnion(asked, 'offline_access') : asked
  const client = await clientOf({ ...options, issuer, metadata, scope, earlier })
  const state = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')
  const about = { metadata, clientInformation: informationOf(client), resource, fetchFn: fetch }
  const { authorizationUrl, codeVerifier } = await startAuthorization(issuer, { ...about, redirectUrl: redirect, scope, state })
  options.assertPublic(authorizationUrl.href)
  const isAnswer = (answer: URLSearchParams) => answer.get('state') === state
  return {
    address: authorizationUrl.href,
    isAnswer,
    async finish(answer) {
      if (!isAnswer(answer)) throw new Error('the address does not belong to this login: its state is another one')
      const iss = answer.get('iss') ?? undefined
      const issParameterSupported = metadata?.authorization_response_iss_parameter_supported === true
      validateAuthorizationResponseIssuer({ iss, expectedIssuer: metadata?.issuer, issParameterSupported })
      const authorizationCode = answer.get('code')
      const refusal = [answer.get('error') ?? 'neither a code nor an error', answer.get('error_description') ?? []].flat().join(': ')
      if (authorizationCode === null) throw new Error(`the server answered ${refusal}`)
      const tokens = await exchangeAuthorization(issuer, { ...about, authorizationCode, iss, codeVerifier, redirectUri: redirect })
      const credentials = { client, issuer, metadata, resource, scope: tokens.scope ?? scope }
      await store.change(async () => withTokens(credentials, tokens, options.now()))
    },
  }
}

/** Finds the authorization server, and the scope that the MCP server wants. @throws Error for metadata of another server */
async function findAuthorization(url: string, fetch: FetchLike) {
  const challenge = await challengeOf(url, fetch)
  const found = await discoverOAuthServerInfo(url, { resourceMetadataUrl: challenge.resourceMetadataUrl, fetchFn: fetch })
  const { authorizationServerUrl: issuer, authorizationServerMetadata: metadata, resourceMetadata } = found
  if (resourceMetadata !== undefined && metadata === undefined)
    throw new Error(`the authorization server ${issuer} does not describe itself`)
  const resource = resourceMetadata?.resource
  const own = resourceUrlFromServerUrl(url)
  if (resource !== undefined && !checkResourceAllowed({ requestedResource: own, configuredResource: resource }))
    throw new Error(`its metadata describes another server: ${resource}`)
  return { issuer, metadata, resource, wanted: challenge.scope ?? (resourceMetadata?.scopes_supported?.join(' ') || undefined) }
}

/** Asks the server once without a token, as the protocol wants it, and returns what its refusal says. */
async function challengeOf(url: string, fetch: FetchLike) {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'braidclaw', version: '1' } }
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  })
  await answer.body?.cancel()
  return extractWWWAuthenticateParams(answer)
}

type ClientQuestion = LoginOptions & Omit<McpCredentials, 'client'> & { readonly earlier: McpCredentials | undefined }

/** Takes the given client, else the last one if it may come back to this address, else registers a new one. */
async function clientOf({ client, redirect, fetch, issuer, metadata, scope, earlier }: ClientQuestion): Promise<McpOAuthClient> {
  const isDocument = client !== undefined && isHttpsUrl(client.id)
  if (client && (!isDocument || metadata?.client_id_metadata_document_supported === true)) return client
  if (earlier?.issuer === issuer && [undefined, redirect].includes(earlier.client.redirect)) return earlier.client
  if (metadata && metadata.registration_endpoint === undefined)
    throw new Error(`the authorization server ${issuer} registers no clients; register one there and give its name with --client-id`)
  const supported = metadata?.token_endpoint_auth_methods_supported ?? ['none']
  const authMethod = ['none', 'client_secret_basic', 'client_secret_post'].find((method) => supported.includes(method))
  const { client_id, client_secret, token_endpoint_auth_method } = await registerClient(issuer, {
    metadata,
    scope,
    fetchFn: fetch,
    clientMetadata: {
      client_name: 'BraidClaw',
      redirect_uris: [redirect],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      application_type: 'native',
      token_endpoint_auth_method: authMethod,
    },
  })
  return { id: client_id, secret: client_secret, authMethod: token_endpoint_auth_method ?? authMethod, redirect }
}

/** Asks the authorization server to forget the tokens. @returns why it could not be asked; undefined when it did. Never throws. */
export async function revokeTokens({ client, metadata, tokens }: McpCredentials, fetch: FetchLike): Promise<string | undefined> {
  const endpoint = metadata && 'revocation_endpoint' in metadata ? metadata.revocation_endpoint : undefined
  if (typeof endpoint !== 'string' || tokens === undefined) return 'the server has no address for it'
  const hint = tokens.refresh_token ? 'refresh_token' : 'access_token'
  const body = new URLSearchParams({ token: tokens[hint] ?? '', token_type_hint: hint })
  const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded' })
  const method = selectClientAuthMethod(informationOf(client), metadata?.token_endpoint_auth_methods_supported ?? [])
  const words = [client.id, client.secret ?? ''].map(encodeURIComponent).join(':')
  if (method === 'client_secret_basic') headers.set('authorization', `Basic ${btoa(words)}`)
  else body.set('client_id', client.id)
  if (method === 'client_secret_post') body.set('client_secret', client.secret ?? '')
  try {
    const { ok, status } = await fetch(endpoint, { method: 'POST', headers, body })
    return ok ? undefined : `it answered ${status}`
  } catch (error) {
    return errorText(error)
  }
}
