/** Builds the message for an unknown key: the nearest spelling, the right section, or why the file must not contain secrets. */

import { didYouMean, nearest } from '../../kit/did-you-mean.ts'
import { leafOf, patternOf, providerPrefix, rowsOfKind, sectionOf, type Table } from '../table.ts'
import { quote } from '../text/toml-quote.ts'

const secret = /^(api_?)?key$|^api_?(token|secret)$|^(auth_?)?token$|^secret$|^password$|^authorization$|^bearer$/

/** Tells whether some key lies below this pattern (`channels.cli`). */
export function isSection({ settings }: Table, pattern: string): boolean {
  return settings.some((setting) => setting.key.startsWith(`${pattern}.`))
}

type Unknown = { readonly prefix: string; readonly name: string; readonly kind?: string | undefined }

/** `prefix` ends in a dot or is empty; `kind` is the kind of the enclosing provider. The message never shows the value. */
export function unknownKey(table: Table, { prefix, name, kind }: Unknown, raw: unknown): string {
  if (prefix === providerPrefix) return `${quote(name)} cannot be the name of a provider; use letters, digits, "-" and "_"`
  if (secret.test(name.replaceAll('-', '_').toLowerCase())) return literalSecret(raw)
  const all = childrenOf(table, patternOf(prefix))
  const own = rowsOfKind(kind)
  const siblings = own ? ['kind', ...Object.keys(own)] : all
  const near = nearest(name, siblings) ?? nearest(name, all)
  if (near !== undefined) return `unknown key; did you mean "${near}"?`
  return (
    otherSection(table, name) ??
    `unknown key; ${prefix === '' ? 'at the top of the file' : `in [${prefix.slice(0, -1)}]`} there can be: ${siblings.join(', ')}`
  )
}

function literalSecret(raw: unknown): string {
  const variable = typeof raw === 'string' ? /^\$\{?([A-Z_][A-Z0-9_]*)\}?$/.exec(raw)?.[1] : undefined
  const name = variable ?? 'OPENAI_API_KEY'
  const doing =
    variable === undefined
      ? `put the secret into an environment variable and write its name: api_key_env = "${name}"`
      : `write api_key_env = "${name}"`
  return `secrets do not belong in this file; ${doing}`
}

/** Returns a message when the key exists, but in another section. */
function otherSection({ settings }: Table, name: string): string | undefined {
  const leaf = nearest(
    name,
    settings.map((setting) => leafOf(setting.key)),
  )
  const found = settings.find((setting) => leafOf(setting.key) === leaf)
  if (leaf === undefined || found === undefined) return undefined
  const section = sectionOf(found.key).replace('*', 'NAME')
  const place = section === '' ? 'the top of the file, above the first [section]' : `[${section}]`
  return `unknown key here${leaf === name ? '' : didYouMean(name, [leaf])}${leaf === name ? ';' : ''} "${leaf}" belongs to ${place}`
}

function childrenOf({ settings }: Table, prefix: string): readonly string[] {
  const below = settings.filter((setting) => setting.key.startsWith(prefix)).map((setting) => setting.key.slice(prefix.length))
  return [...new Set(below.map((rest) => rest.split('.')[0] ?? rest))]
}
