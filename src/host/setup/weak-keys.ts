/** Warns once per home that a provider's key is too weak to redact, and why. */

import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import { rowsOfKind } from '../../config/table.ts'
import { camel, type Rows } from '../../kit/settings.ts'
import { weaknessOf } from '../../security/redaction/secret-forms.ts'
import type { HostContext, Setup } from '../api.ts'

export type WeakKey = { readonly name: string; readonly why: string }

export function weakKeys({ config, context }: Pick<Setup, 'config' | 'context'>): readonly WeakKey[] {
  return keysIn(config, context).flatMap(([name, value]) => {
    const why = weaknessOf(value)
    return why === undefined ? [] : [{ name, why }]
  })
}

export function sayWeakKey({ name, why }: WeakKey): string {
  return `${name} ${why}, like a key that only fills the place: it is not looked for, so it is not taken out of what is shown, stored or sent to a model`
}

/** Returns every variable that the configuration names as a secret's, with its value; the context already knows the usual ones. */
export function keysIn(
  { providers, channels }: Config,
  { env, channels: known }: Pick<HostContext, 'env' | 'channels'>,
): [string, string][] {
  const named = [
    ...Object.values(providers.models).flatMap((model) => variablesIn(rowsOfKind(model.kind), model)),
    ...known.flatMap(({ name, settings }) => variablesIn(settings, channels[name])),
  ]
  return named.flatMap((name): [string, string][] => (env[name] ? [[name, env[name]]] : []))
}

function variablesIn(rows: Rows = {}, values: { readonly [key: string]: unknown } = {}): readonly string[] {
  return Object.entries(rows).flatMap(([key, row]) => {
    const value = row.type === 'text' && row.form === 'variable' ? values[camel(key)] : undefined
    return typeof value === 'string' ? [value] : []
  })
}

/** A home that does not exist yet, or is not writable, gets the warning again. */
export function warnOfWeakKeys(setup: Setup): void {
  const path = `${setup.paths.home}/weak-keys`
  for (const weak of weakKeys(setup)) {
    if (existsSync(path) && readFileSync(path, 'utf8').split('\n').includes(weak.name)) continue
    setup.log('warn', sayWeakKey(weak))
    try {
      appendFileSync(path, `${weak.name}\n`, { mode: 0o600 })
    } catch {}
  }
}
