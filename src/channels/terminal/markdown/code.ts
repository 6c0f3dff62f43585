/** Colours code line by line: all that a line knows of the lines before it is the comment or text that it begins in. */

import * as languages from '@speed-highlight/core/languages'
import { type ShjLanguageData, type ShjToken, tokenizeWith } from '@speed-highlight/core/tokenize'
import { fitted, type StyledRow, type StyledText, span } from './rows.ts'

const names: { readonly [alias: string]: string } = {
  ...{ javascript: 'js', mjs: 'js', jsx: 'js', typescript: 'ts', tsx: 'ts', jsonc: 'json', patch: 'diff', svg: 'xml', scss: 'css' },
  ...{ python: 'py', sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', rust: 'rs', golang: 'go', yml: 'yaml', 'c++': 'c', cpp: 'c' },
  ...{ dockerfile: 'docker', makefile: 'make', perl: 'pl', markdown: 'md' },
}

const styles: { readonly [token: string]: StyledText['style'] } = {
  ...{ kwd: ['magenta'], str: ['green'], insert: ['green'], num: ['yellow'], bool: ['yellow'], esc: ['yellow'], cmnt: ['dim'] },
  ...{ func: ['blue'], class: ['cyan'], type: ['cyan'], section: ['cyan'], deleted: ['red'], err: ['red'] },
}

/** A longer line has no colours: the patterns of a language need quadratic time in the worst case. */
const longest = 400

type Grammars = { readonly [name: string]: ShjLanguageData | undefined }

/** `inside`: what opened the comment or text that the line begins in, else empty. */
export type Code = { readonly grammar: ShjLanguageData | undefined; readonly grammars: Grammars; readonly inside: string }

/** Begins code of the language that a fence names. */
export function codeIn(language: string): Code {
  const name = language.toLowerCase()
  // Comments have one colour, as without a grammar for what stands in them.
  const grammars: Grammars = { ...languages, todo: undefined, jsdoc: undefined }
  return { grammar: grammars[names[name] ?? name], grammars, inside: '' }
}

/** @returns the rows of the line, and what the next line begins in */
export function codeRows(
  line: string,
  { grammar, grammars, inside }: Code,
  columns: number,
): readonly [rows: readonly StyledRow[], inside: string] {
  if (grammar === undefined || line.length > longest) return [fitted([span(line)], columns, true), inside]
  const row: StyledText[] = []
  const text = `${inside}${line}`
  const state = { at: 0, inside: '' }
  const take = (piece: string, token?: ShjToken) => {
    const end = state.at + piece.length
    const own = text.slice(Math.max(state.at, inside.length), Math.max(end, inside.length))
    if (own !== '') row.push(span(own, (token && styles[token]) ?? []))
    if (end > text.length && (token === 'cmnt' || token === 'str')) state.inside = openerIn(text)
    state.at = end
  }
  // The token of the dot says whether the line ends within a comment or a text.
  tokenizeWith(`${text}\n.`, grammar, take, { languages: grammars as Record<string, ShjLanguageData> })
  return [fitted(row, columns, true), state.inside]
}

/** Colours the code within rows of Bun's renderer, which begins it with `┌─ language` and each of its lines with `│ `. */
export function colouredFences(rows: readonly StyledRow[], columns: number): readonly StyledRow[] {
  const state: { code?: Code | undefined } = {}
  return rows.flatMap((row) => {
    const lead = row.slice(0, row.findIndex(({ text, style }) => text === '│ ' && style.join() === 'dim') + 1)
    if (state.code && lead.length > 0) {
      const space = Math.max(2, columns - Bun.stringWidth(wordsOf(lead)))
      const [code, inside] = codeRows(wordsOf(row.slice(lead.length)).trimEnd(), state.code, space)
      state.code = { ...state.code, inside }
      return code.map((each) => [...lead, ...each])
    }
    const [mark, language] = row.slice(-2)
    state.code = language && mark?.text.endsWith('┌─ ') && mark.style.includes('dim') ? codeIn(language.text) : undefined
    return [row]
  })
}

const wordsOf = (row: StyledRow) => row.reduce((words, { text }) => words + text, '')

function openerIn(text: string): string {
  const [last = ''] = ['/*', '"""', "'''", '`']
    .filter((each) => text.includes(each))
    .sort((a, b) => text.lastIndexOf(b) - text.lastIndexOf(a))
  return last
}
