/** Checks one raw value against one row of the table and returns the usable value or all its errors. */

import { normalize, resolve } from 'node:path'
import { isJsonObject, isObject, type JsonObject } from '../../kit/json.ts'
import { type Form, forms, type Row } from '../../kit/settings.ts'
import { didYouMean } from '../../kit/text.ts'
import { quote, shown } from './toml.ts'

export type ConfigValue = string | number | boolean | readonly string[] | readonly number[] | JsonObject

/**
 * `base` is the folder where a relative path starts. `typed`: a person typed the value just now, so any path may be relative; in a file
 * only few may be.
 */
export type Where = ExpandContext & { readonly base: string; readonly typed: boolean }

type Checked = { readonly value?: ConfigValue; readonly wrong: readonly string[] }

export function check(setting: Row, raw: unknown, where: Where): Checked {
  switch (setting.type) {
    case 'boolean':
      return typeof raw === 'boolean' ? right(raw) : mismatch('true or false', raw)
    case 'choice':
      return choice(setting.values, raw)
    case 'whole':
    case 'number':
      return number(setting, raw)
    case 'text':
      return typeof raw === 'string' ? text(setting.form ?? 'any', raw, where) : mismatch('text in quotes', raw)
    case 'url':
      return typeof raw === 'string' ? url(raw, where) : mismatch('an address in quotes', raw)
    case 'path':
      return typeof raw === 'string' ? path(raw, where, setting.relative === true) : mismatch('a path in quotes', raw)
    case 'paths':
      return list(raw, 'paths in quotes', (item) =>
        typeof item === 'string' ? path(item, where, false) : mismatch('a path in quotes', item),
      )
    case 'words':
      return words(setting, raw)
    case 'ports':
      return list(raw, 'port numbers', (item) => number({ type: 'whole', min: 1, max: 65_535, unit: '' }, item))
    case 'map':
      return map(raw)
    case 'table':
      return isJsonObject(raw) ? right(raw) : mismatch('a table', raw)
  }
}

function right(value: ConfigValue): Checked {
  return { value, wrong: [] }
}

function wrong(why: string): Checked {
  return { wrong: [why] }
}

function mismatch(expected: string, raw: unknown): Checked {
  const unquoted = typeof raw === 'string' && /^(true|false|[+-]?\d[\d_]*(\.\d+)?)$/.test(raw) ? '; write it without quotes' : ''
  return wrong(`must be ${expected}, found ${kindOf(raw)}${unquoted}`)
}

function kindOf(raw: unknown): string {
  if (typeof raw === 'string') return `the text ${shown(raw)}`
  return typeof raw === 'object' ? shown(raw) : `${typeof raw === 'boolean' ? '' : 'the number '}${shown(raw)}`
}

function choice(values: readonly string[], raw: unknown): Checked {
  if (typeof raw === 'string' && values.includes(raw)) return right(raw)
  const allowed = values.map(quote).join(', ')
  if (typeof raw !== 'string') return mismatch(`one of ${allowed}`, raw)
  return wrong(`${shown(raw)} is not allowed; allowed values: ${allowed}${didYouMean(raw, values)}`)
}

type Bounds = { readonly type: 'whole' | 'number'; readonly min: number; readonly max: number; readonly unit: string }

function number({ type, min, max, unit }: Bounds, raw: unknown): Checked {
  const range = `from ${min} to ${max}${unit === '' ? '' : ` (${unit})`}`
  if (typeof raw !== 'number' && typeof raw !== 'bigint') return mismatch(`a ${type === 'whole' ? 'whole ' : ''}number ${range}`, raw)
  if (typeof raw === 'bigint' || !(raw >= min && raw <= max)) return wrong(`${shown(raw)} is out of range; must be ${range}`)
  return type === 'whole' && !Number.isInteger(raw) ? wrong(`must be a whole number ${range}, found ${shown(raw)}`) : right(raw)
}

/** Commands, domains and names of variables are literal; other text may contain `$NAME`. */
function text(form: Form, raw: string, where: Where): Checked {
  const { pattern, says } = forms[form]
  if (form === 'variable' && !new RegExp(pattern).test(raw))
    return wrong(`must be ${says} (what stands there is not shown: it may be a secret)`)
  const expanded = form === 'any' || form === 'provider' ? expand(raw, where) : { ok: true as const, text: raw }
  if (!expanded.ok) return wrong(`${shown(raw)}: ${expanded.why}`)
  const fits = form === 'any' ? expanded.text !== '' && !expanded.text.includes('\0') : new RegExp(pattern).test(expanded.text)
  return fits ? right(expanded.text) : wrong(`${shown(raw)} must be ${says}`)
}

function path(raw: string, where: Where, relative: boolean): Checked {
  const expanded = expandPath(raw, where)
  if (!expanded.ok) return wrong(`${shown(raw)}: ${expanded.why}`)
  const full = expanded.text
  if (full === '' || full.includes('\0')) return wrong(`${shown(raw)} is not a path; write an absolute one, or one that starts with "~/"`)
  if (full.startsWith('/')) return right(trimmed(full))
  if (relative || where.typed) return right(resolve(where.base, full))
  return wrong(`${shown(raw)} is not absolute; start it with "/", "~/" or a variable such as "$HOME/"`)
}

function trimmed(path: string): string {
  const clean = normalize(path)
  return clean.length > 1 && clean.endsWith('/') ? clean.slice(0, -1) : clean
}

/** Never shows the text when it contains a password or a query, because either may be a key. */
function url(raw: string, where: Where): Checked {
  const expanded = expand(raw, where)
  if (!expanded.ok) return wrong(expanded.why)
  const parsed = URL.parse(expanded.text)
  if (parsed?.username || parsed?.password || expanded.text.includes('?') || expanded.text.includes('#'))
    return wrong('must hold no user, password, "?" or "#"; put the key into an environment variable and name it with api_key_env')
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || !/^https?:\/\/[^\s\\]+$/i.test(expanded.text))
    return wrong(`${shown(raw)} is not an address; write one such as "https://api.example.org/v1"`)
  return right(expanded.text.replace(/\/+$/, ''))
}

function list(raw: unknown, of: string, item: (raw: unknown) => Checked): Checked {
  if (!Array.isArray(raw)) return mismatch(`a list of ${of}, such as [${of.startsWith('port') ? '80, 443' : '"a", "b"'}]`, raw)
  const items = raw.map(item)
  const bad = items.flatMap((each, index) => each.wrong.map((why) => `item ${index + 1}: ${why}`))
  if (bad.length > 0) return { wrong: bad }
  const values = items.map((each) => each.value)
  if (values.every((value) => typeof value === 'number')) return right([...new Set(values)])
  return right([...new Set(values.filter((value) => typeof value === 'string'))])
}

function words(setting: Extract<Row, { type: 'words' }>, raw: unknown): Checked {
  const { pattern, says } = forms[setting.form]
  const one = (item: unknown): Checked => {
    if (typeof item !== 'string') return mismatch('text in quotes', item)
    if (new RegExp(pattern).test(item) || (setting.everyone && item === '*')) return right(item)
    return wrong(`${shown(item)} must be ${says}${setting.everyone ? ', or "*" for everyone' : ''}`)
  }
  const checked = list(raw, 'words in quotes', one)
  return setting.filled && Array.isArray(raw) && raw.length === 0 ? wrong('must not be empty; name at least one') : checked
}

function map(raw: unknown): Checked {
  if (!isObject(raw) || raw instanceof Date) return mismatch('a table such as { cheap = "local" }', raw)
  const bad = Object.entries(raw).filter(([, name]) => typeof name !== 'string' || !new RegExp(forms.provider.pattern).test(name))
  if (bad.length > 0) return { wrong: bad.map(([hint, name]) => `${shown(hint)}: must be ${forms.provider.says}, found ${kindOf(name)}`) }
  return right(Object.fromEntries(Object.entries(raw).map(([hint, name]) => [hint, String(name)])))
}

export type ExpandContext = {
  /** The value of `~/.braidclaw`: BRAIDCLAW_HOME moves the whole tree. */
  readonly home: string
  /** The value of `~`. */
  readonly userHome: string
  readonly env: { readonly [name: string]: string | undefined }
}

type Expanded = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly why: string }

const reference = /\$(?:\$|([A-Za-z_]\w*)|\{([^}]*)(\}?))/g

/**
 * Expands `$NAME` and `${NAME}`. An unset variable is an error, never an empty string. `$$` is a literal dollar sign; the value of a
 * variable is not expanded again.
 */
export function expand(text: string, around: ExpandContext): Expanded {
  if (!text.includes('$')) return { ok: true, text }
  const wrong: string[] = []
  const done = text.replace(reference, (whole, bare?: string, braced?: string, closed?: string) => {
    if (whole === '$$') return '$'
    if (closed === '') return note(wrong, `"${'$'}{" is never closed; write ${'$'}{NAME}, or $$ for a dollar sign`)
    return lookUp(bare ?? braced ?? '', around, wrong)
  })
  const [first] = wrong
  return first === undefined ? { ok: true, text: done } : { ok: false, why: wrong.join('; ') }
}

/** Works like `expand`, and also expands `~` at the start. */
export function expandPath(text: string, around: ExpandContext): Expanded {
  const expanded = expand(text, around)
  if (!expanded.ok || !text.startsWith('~')) return expanded
  const path = expanded.text
  if (path === '~/.braidclaw' || path.startsWith('~/.braidclaw/'))
    return { ok: true, text: around.home + path.slice('~/.braidclaw'.length) }
  if (path === '~' || path.startsWith('~/')) return { ok: true, text: around.userHome + path.slice(1) }
  return { ok: false, why: '"~name" is not supported; write the full path, or "~/…" for your own home' }
}

function lookUp(name: string, { env, home }: ExpandContext, wrong: string[]): string {
  if (!/^[A-Za-z_]\w*$/.test(name)) return note(wrong, `between "${'$'}{" and "}" only a variable's name may stand`)
  if (name === 'BRAIDCLAW_HOME') return home
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  if (value === undefined || value === '')
    return note(wrong, `the environment variable ${name} is not set; set it, or write the value itself`)
  return value
}

function note(wrong: string[], why: string): string {
  wrong.push(why)
  return ''
}
