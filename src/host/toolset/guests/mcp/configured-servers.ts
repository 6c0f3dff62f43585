/** Lists the MCP servers that the operator and a trusted project configured. It starts none, and replaces no variable before one starts. */

import { join } from 'node:path'
import { readConfigFile } from '../../../../config/text/read-toml-file.ts'
import { createTableReader, type FieldProblem, type TableReader } from '../../../../config/text/table-reader.ts'
import { readToml } from '../../../../config/text/toml.ts'
import { createTrust } from '../../../../config/trust.ts'
import { isJsonObject, isObject, type JsonObject, parseJson } from '../../../../kit/json.ts'
import { forms } from '../../../../kit/settings.ts'
import { sha256 } from '../../../../kit/sha256.ts'
import { quote, visible } from '../../../../kit/text.ts'
import type { McpClientLogin, McpTransport } from '../../../../mcp/contract.ts'
import { quoteText } from '../../../../security/command/syntax/quote.ts'
import { weaknessOf } from '../../../../security/redaction/secret-forms.ts'
import type { Setup } from '../../../api.ts'
import { realFolder } from '../../../setup/workspace-folder.ts'
import { type GuestPermissions, permissionsOf, textsLike } from '../plugins/manifest.ts'

/** The access of a server that runs on this machine: also to further folders, which it writes where it writes the workspace. */
export type McpPermissions = GuestPermissions & { readonly folders: readonly string[] }

export type McpServer = {
  readonly id: string
  readonly name: string
  /** As it is written: `${NAME}` stands in it until the server starts. */
  readonly transport: McpTransport
  readonly permissions: McpPermissions
  /** The file that configures it. */
  readonly origin: string
  /** The folder of the project that configures it; absent: the operator does. */
  readonly project?: string
  /** Identifies it in the book of approvals: a project's server is another one than one of the same id in the operator's own file. */
  readonly key: string
  readonly enabled: boolean
}

/** Returns the file that `mcp add` writes. */
export function ownServerFile(home: string): string {
  return join(home, 'mcp.json')
}

/** `problems` name servers that cannot be used, each with the file and what to change. */
type Draft = { readonly servers: Map<string, McpServer>; readonly problems: string[]; readonly notices: string[] }

/**
 * Reads the nearest place first: the trusted project, the operator's config.toml, mcp.json of our home, .mcp.json of the user's home. `added`
 * counts as if it stood in mcp.json.
 */
export function configuredServers({ config, origins, paths, context }: Setup, added: JsonObject = {}) {
  const draft: Draft = { servers: new Map(), problems: [], notices: [] }
  const workspace = realFolder(config.workspaceDir)
  const userHome = context.env.HOME
  const own = ownServerFile(paths.home)
  const putAll = (tables: JsonObject, origin: string, project?: string) => {
    for (const [id, table] of Object.entries(tables)) put(draft, { id, table, origin, project })
  }
  const fromConfig = (project?: string) => {
    for (const [id, table] of Object.entries(config.mcp.servers)) {
      const { source, where = 'config.toml' } = origins[`mcp.servers.${id}`] ?? {}
      if ((source === 'project') === (project !== undefined)) putAll({ [id]: table }, where, project)
    }
  }
  const fromFile = (file: string, project?: string) => {
    const found = serversIn(file)
    if (typeof found === 'string') draft.problems.push(found)
    else putAll(found, file, project)
  }
  fromConfig(workspace)
  if (workspace !== (userHome && realFolder(userHome))) {
    const file = join(workspace, '.mcp.json')
    if (createTrust(paths.trustedFolders).isTrusted(workspace)) fromFile(file, workspace)
    else if (readConfigFile(file).state !== 'missing')
      draft.notices.push(`${file} is ignored: this folder is not trusted. Read it, then run: braidclaw trust ${quoteText(workspace)}`)
  }
  fromConfig()
  fromFile(own)
  if (userHome) fromFile(join(userHome, '.mcp.json'))
  putAll(added, own)
  return { ...draft, servers: [...draft.servers.values()] }
}

/** Reads a file of the form `{"mcpServers": {ID: {…}}}`. @returns a sentence that says why it cannot be used */
export function serversIn(file: string): JsonObject | string {
  const read = readConfigFile(file)
  if (read.state === 'missing') return {}
  if (read.state === 'unusable') return `${file} ${read.why}`
  if (read.worldWritable) return `${file} can be changed by every user; run: chmod o-w`
  const data = parseJson(read.text)
  if (isJsonObject(data) && isJsonObject(data.mcpServers)) return data.mcpServers
  return `${file} is not JSON such as {"mcpServers": {"memory": {"command": "mcp-server-memory"}}}`
}

type Written = Pick<McpServer, 'id' | 'origin' | 'project'> & { readonly table: unknown }

function put({ servers, problems, notices }: Draft, written: Written): void {
  const { id, table, origin } = written
  const winner = servers.get(id)
  if (winner !== undefined)
    notices.push(`the MCP server ${visible(id)} of ${origin} does not count: ${winner.origin} has one of that id, too`)
  else if (!/^[\w-]{1,64}$/.test(id))
    problems.push(`${origin}: ${quote(id)} cannot be the id of a server; use letters, digits, "-" and "_"`)
  else if (!isObject(table)) problems.push(`${origin}: the server ${id} must be a table; got ${quote(table)}`)
  else {
    const found: FieldProblem[] = []
    const place = (field: string) => {
      const read = origin.endsWith('.toml') ? readConfigFile(origin) : undefined
      return read?.state === 'text' ? readToml(read.text).place(field) : undefined
    }
    const reader = createTableReader({ data: table, path: `mcp.servers.${id}`, place }, found)
    const server = serverOf(reader, written)
    // Other programs read the files of JSON, too, and have fields of theirs.
    if (!origin.endsWith('.json')) reader.end()
    if (found.length === 0) servers.set(id, server)
    for (const { line, field, message } of found)
      problems.push(`${origin}${line === undefined ? '' : `:${line}`}: ${visible(field)} ${visible(message)}`)
  }
}

function serverOf(table: TableReader, { id, origin, project }: Written): McpServer {
  const named = table.has('transport') ? 'transport' : 'type'
  const declared = table.table('permissions')
  const folders = textsLike(declared, 'folders', /^~?\//, 'absolute paths of folders')
  const permissions = { ...permissionsOf(declared), folders }
  declared.end()
  const kind = table.oneOf(named, ['stdio', 'http', 'sse', 'streamable-http'], table.has('url') ? 'http' : 'stdio')
  return {
    id,
    name: table.text('name', id),
    transport: kind === 'stdio' ? command(table) : address(table, kind === 'sse' ? 'sse' : 'http'),
    permissions,
    origin,
    project,
    key: project === undefined ? id : `${project}#${id}`,
    enabled: table.truth('enabled', true) && !table.truth('disabled', false),
  }
}

function command(table: TableReader): McpTransport {
  const words = Array.isArray(table.raw('command')) ? table.texts('command') : [table.text('command')]
  if (words.length === 0 || words[0] === '') table.wrong('command', 'names no program')
  return { kind: 'stdio', argv: [...words, ...table.texts('args', [])], env: textsIn(table, 'env') }
}

function address(table: TableReader, kind: 'http' | 'sse'): McpTransport {
  const url = table.text('url')
  const parsed = URL.parse(url.replaceAll(variable, 'x'))
  if (url !== '' && (!/^https?:$/.test(parsed?.protocol ?? '') || parsed?.username || parsed?.password))
    table.wrong('url', 'must be an http or https address without a user or a password; put a key into "headers", as "${NAME}"')
  const auth = table.table('auth')
  const token = auth.text('token', '')
  const login = loginIn(auth)
  if (login && token !== '') auth.wrong('token', 'and "client_id" exclude each other; leave one out')
  const headers = { ...textsIn(table, 'headers'), ...textsIn(auth, 'headers') }
  auth.end()
  return { kind, url, login, headers: token === '' ? headers : { ...headers, authorization: `Bearer ${token}` } }
}

/** Reads the client that logs in without a user. A secret that stands in the file is refused, and not repeated. */
function loginIn(auth: TableReader): McpClientLogin | undefined {
  if (!['client_id', 'client_secret_variable', 'private_key_variable', 'issuer', 'scope'].some(auth.has)) return undefined
  if (auth.has('private_key_variable') && auth.raw('client_secret_variable') !== undefined)
    auth.wrong('client_secret_variable', 'and "private_key_variable" exclude each other; leave one out')
  const proof = auth.has('private_key_variable') ? 'key' : 'secret'
  const field = proof === 'key' ? 'private_key_variable' : 'client_secret_variable'
  const variable = auth.text(field)
  if (!new RegExp(forms.variable.pattern).test(variable))
    auth.wrong(field, 'is the name of the environment variable that holds it, such as "DOCS_SECRET"; what stands there is none')
  const issuer = auth.text('issuer')
  if (auth.has('issuer') && !/^https?:$/.test(URL.parse(issuer)?.protocol ?? ''))
    auth.wrong('issuer', 'is the address of the authorization server to which this client belongs, such as "https://login.example.org"')
  return { clientId: auth.text('client_id'), issuer, scope: auth.text('scope', ''), proof, variable }
}

function textsIn(table: TableReader, name: string): { readonly [name: string]: string } {
  const given = table.raw(name) ?? {}
  const isRight = isObject(given) && Object.values(given).every((one) => typeof one === 'string')
  if (!isRight) table.wrong(name, 'is a table of texts')
  return isRight ? Object.fromEntries(Object.entries(given).map(([key, value]) => [key, String(value)])) : {}
}

const variable = /\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g

/** Returns the folder in which a server keeps what is its own; `${BRAIDCLAW_STATE}` stands for it. */
export function stateFolder(home: string, key: string): string {
  return join(home, 'mcp', 'state', sha256(key).slice(0, 32))
}

/**
 * Returns the transport with the values of the variables that its own file names, and the declared ones. Values that may be keys are redacted
 * from now on. @returns why it cannot start when a variable is not set
 */
export function expanded(
  { id, key, transport, permissions }: McpServer,
  { context, redactor, paths }: Pick<Setup, 'context' | 'redactor' | 'paths'>,
): McpTransport | { readonly why: string } {
  const missing = new Set<string>()
  const hide = (value: string, name: string) => {
    if (!value.startsWith('/') && !weaknessOf(value)) redactor.register(value, name)
    return value
  }
  const fill = (text: string) =>
    text.replaceAll(variable, (_, name: string, otherwise: string | undefined) => {
      if (name === 'BRAIDCLAW_STATE') return stateFolder(paths.home, key)
      const value = context.env[name] || otherwise
      if (value === undefined) missing.add(name)
      return hide(value ?? '', name)
    })
  const each = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([name, value]) => [name, hide(fill(value), name)]))
  const withSecret = (login: McpClientLogin | undefined) => login && { ...login, secret: fill(`\${${login.variable}}`) }
  const declared = permissions.variables.flatMap((name) => (context.env[name] === undefined ? [] : [[name, context.env[name]] as const]))
  const filled: McpTransport =
    transport.kind === 'stdio'
      ? { ...transport, argv: transport.argv.map(fill), env: { ...each(Object.fromEntries(declared)), ...each(transport.env) } }
      : { ...transport, url: fill(transport.url), headers: each(transport.headers), login: withSecret(transport.login) }
  if (missing.size === 0) return filled
  return { why: `the MCP server ${id} needs the variable ${[...missing].join(', ')}, which is not set; set it, or write \${NAME:-default}` }
}
