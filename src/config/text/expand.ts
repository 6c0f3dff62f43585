/** Expands `~`, `$NAME` and `${NAME}` in configured text. An unset variable is an error, never an empty string. */

export type ExpandContext = {
  /** The value of `~/.braidclaw`: BRAIDCLAW_HOME moves the whole tree. */
  readonly home: string
  /** The value of `~`. */
  readonly userHome: string
  readonly env: { readonly [name: string]: string | undefined }
}

export type Expanded = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly why: string }

const reference = /\$(?:\$|([A-Za-z_]\w*)|\{([^}]*)(\}?))/g

/** `$$` is a literal dollar sign; the value of a variable is not expanded again. */
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
