/** Adds the providers that need no table: those whose key is in the environment, and a known provider chosen by name. */

import { knownNames, knownProvider, type Proposal, proposeProviders } from '../known-providers.ts'
import { type Entries, type Entry, providerNames } from './entries.ts'
import { membersOf } from './references.ts'

type Environment = { readonly [name: string]: string | undefined }

/** Sets the default provider that is used when nobody named one. */
export function withDefaultProvider(base: Entries, env: Environment): Entries {
  const [first] = proposeProviders(env)
  if (first === undefined) return base
  return new Map([...base, ['default_provider', entry(first.name, first.because)] as const])
}

/** Adds the known providers; a user's table with one of their names stays unchanged. */
export function withKnownProviders(entries: Entries, env: Environment): Entries {
  const configured = providerNames(entries)
  const wanted = new Set([...namedIn(entries, configured), ...proposeProviders(env).map(({ name }) => name)])
  const missing = knownNames.filter((name) => wanted.has(name) && !configured.includes(name))
  const tables = missing.flatMap((name) => knownProvider(name, env) ?? []).flatMap(rowsOf)
  return tables.length === 0 ? entries : new Map([...entries, ...tables])
}

function namedIn(entries: Entries, configured: readonly string[]): readonly string[] {
  const members = configured.flatMap((name) => membersOf(entries, name).map((member) => member.name))
  return [...['default_provider', 'vision.provider'].map((key) => String(entries.get(key)?.value)), ...members]
}

function rowsOf({ name, kind, model, baseUrl, apiKeyEnv, because }: Proposal): [string, Entry][] {
  const values = { kind, model, base_url: baseUrl, api_key_env: apiKeyEnv }
  return Object.entries(values).flatMap(([leaf, value]): [string, Entry][] =>
    value === undefined ? [] : [[`providers.models.${name}.${leaf}`, entry(value, because)]],
  )
}

function entry(value: string, where: string): Entry {
  return { value, origin: { source: 'default', where } }
}
