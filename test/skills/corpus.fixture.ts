/** Writes the folders of 60 honest and 60 poisoned skills, after public patterns of both, from two tables. */

import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export type CorpusSkill = {
  readonly name: string
  readonly files: readonly { readonly path: string; readonly text: string; readonly form: '' | 'x' | 'l' | 's' | 'elf' }[]
}

/** Reads `=== NAME | DESCRIPTION`, the body, and `--- PATH FORM` before each further file. */
export function corpus(kind: 'honest' | 'poisoned'): readonly CorpusSkill[] {
  const table = readFileSync(join(import.meta.dir, `${kind}.fixture.txt`), 'utf8')
  return table
    .split(/^=== /m)
    .slice(1)
    .map((entry) => {
      const [head = '', ...parts] = entry.split(/^--- /m)
      const [first = '', ...lines] = head.split('\n')
      const [name = '', description = ''] = first.split(' | ')
      const tools = lines[0]?.startsWith('allowed-tools: ') ? lines.shift() : undefined
      const quoted = tools === undefined ? '' : `\nallowed-tools: ${JSON.stringify(tools.slice('allowed-tools: '.length))}`
      const skill = `---\nname: ${name}\ndescription: ${JSON.stringify(spelled(description))}${quoted}\n---\n${spelled(lines.join('\n'))}`
      const others = parts.map((part) => {
        const [, path = '', form = '', target = '', text = ''] = /^(\S+)(?: (x|l|s|elf)(?: (\S+))?)?\n([\s\S]*)$/.exec(part) ?? []
        return { path, text: form === 'l' ? target : spelled(text), form: form as '' | 'x' | 'l' | 's' | 'elf' }
      })
      return { name, files: [{ path: 'SKILL.md', text: skill, form: '' }, ...others] }
    })
}

/** Returns the folder of the skill. */
export function writeSkill(root: string, { name, files }: CorpusSkill): string {
  for (const { path, text, form } of files) {
    const at = join(root, name, path)
    mkdirSync(dirname(at), { recursive: true })
    if (form === 'l') symlinkSync(text, at)
    else writeFileSync(at, form === 'elf' ? Buffer.from('7f454c460201010000000000', 'hex') : text)
    if (form === 'x' || form === 'elf') chmodSync(at, 0o755)
    if (form === 's') chmodSync(at, 0o4755)
  }
  return join(root, name)
}

/** Replaces `{{FORM:TEXT}}`, because the characters of most forms would not show in the table. */
function spelled(text: string): string {
  return text.replaceAll(/\{\{(\w+):([^}]*)\}\}/g, (_, form: string, inner: string) => forms[form]?.(inner) ?? inner)
}

const codes = (text: string) => [...text].map((character) => character.charCodeAt(0))

const forms: { readonly [form: string]: (text: string) => string } = {
  b64: (text) => Buffer.from(text).toString('base64'),
  hexesc: (text) =>
    codes(text)
      .map((code) => `\\x${code.toString(16)}`)
      .join(''),
  charcodes: (text) => codes(text).join(', '),
  blob: (length) => 'c$@+nW^x9|QZ{k;~7_Rt'.repeat(Number(length) / 20),
  tags: (text) => String.fromCodePoint(...codes(text).map((code) => 0xe0000 + code)),
  vs: (text) => String.fromCodePoint(...codes(text).map((code) => 0xe0100 + code)),
  zw: (text) =>
    codes(text)
      .map((code) => code.toString(2).replaceAll('0', '\u200b').replaceAll('1', '\u200c'))
      .join('\u2060'),
  u: (code) => String.fromCodePoint(Number.parseInt(code, 16)),
}
