/** Implements `token new | list | revoke | rotate`: who may use the gateway. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { makeToken, revokeToken, rotateToken, tokenScopes } from '../../../host/access/tokens.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import type { TokenLimits, TokenRow } from '../../../memory/access-tokens.ts'
import { autonomyLevels } from '../../../security/settings.ts'
import { type Arguments, command, type Flags, type Given } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'
import { type NewSecret, showSecret } from '../control/connect/screen.ts'

const name = { name: { type: 'text', about: 'The name of the token' } } as const satisfies Arguments
const known = { name: { type: 'text', about: 'The name of the token', complete: 'tokens' } } as const satisfies Arguments
const newFlags = {
  scope: { type: 'choice', values: tokenScopes, many: true, about: 'What it may do; may be repeated (default: read and chat)' },
  tools: { type: 'text', about: 'The tools its turns may use, separated by commas' },
  autonomy: { type: 'choice', values: autonomyLevels, about: 'The highest level of its turns' },
  memory: { type: 'choice', values: ['own', 'all'], about: 'own: it sees only its own conversations' },
  folder: { type: 'text', about: 'The folder in which its tools work' },
  ...jsonFlag,
} as const satisfies Flags

export const create = command({
  flags: newFlags,
  args: name,
  examples: [
    ['me --scope admin', 'your own rights, for the dashboard and your scripts'],
    ['bot', 'may look and chat: readonly, without file tools, with a memory of its own'],
    ['ci --scope chat --tools file_read,file_list --autonomy readonly', 'with limits of its own'],
  ],
  async run(context, given, { name }) {
    const { scope = ['read', 'chat'], json = false } = given
    const secret = await withMemory(loadSetup(context), ({ tokens }) => makeToken(tokens, { name, scopes: scope, limits: limitsOf(given) }))
    showToken(context, { name, secret, json })
  },
})

export const list = command({
  flags: jsonFlag,
  examples: [['', 'names, scopes and limits; secrets are not stored']],
  async run(context, { json = false }) {
    const rows = await withMemory(loadSetup(context), ({ tokens }) => tokens.list())
    const none = 'no tokens yet; make one: braidclaw token new me --scope admin'
    printList(context, { items: rows, json, lines: rows.map(lineOf), none })
  },
})

export const revoke = command({
  args: known,
  examples: [['bot', 'requests with it are refused from now on']],
  async run(context, _flags, { name }) {
    await withMemory(loadSetup(context), ({ tokens }) => revokeToken(tokens, name))
    context.process.stdout.write(`revoked: ${name}\n`)
  },
})

export const rotate = command({
  flags: jsonFlag,
  args: known,
  examples: [['bot', 'a new secret; it keeps its conversations']],
  async run(context, { json = false }, { name }) {
    const secret = await withMemory(loadSetup(context), ({ tokens }) => rotateToken(tokens, name))
    showToken(context, { name, secret, json })
  },
})

function showToken(context: CliContext, { name, ...rest }: Pick<NewSecret, 'name' | 'secret' | 'json'>): void {
  showSecret(context, { name: `token "${name}"`, value: { name, token: rest.secret }, ...rest })
}

function limitsOf({ tools, autonomy, memory, folder }: Given<typeof newFlags>): TokenLimits {
  const names = tools?.split(',').map((tool) => tool.trim())
  if (names?.some((tool) => !/^[A-Za-z0-9_.-]+$/.test(tool)))
    throw usageError(`--tools ${JSON.stringify(tools)}: names of tools, separated by commas`)
  return { tools: names, autonomy, memory, folder }
}

function lineOf({ name, scopes, limits, created, revoked }: TokenRow): string {
  const since = new Date(created).toISOString().slice(0, 10)
  const words = Object.entries(limits).map(([key, value]) => `${key}=${String(value)}`)
  const state = revoked === undefined ? '' : `  revoked ${new Date(revoked).toISOString().slice(0, 10)}`
  return `${name.padEnd(16)}  ${scopes.join(',').padEnd(24)}  ${since}${words.length > 0 ? `  ${words.join(' ')}` : ''}${state}`
}
