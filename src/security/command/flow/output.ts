/** What the output of a command may be when another command gets it as arguments. */

import { type Arg, anyFeed, type Feed, literalArg, type Place, sure } from './model.ts'

const counts = new Set('wc nproc seq uptime'.split(' '))
const filters = new Set('sort uniq head tail tac cat grep egrep fgrep rg'.split(' '))
const lists = new Set('find basename which'.split(' '))

/** `args` starts with the basename. */
export function outputOf(name: string, args: readonly Arg[], place: Place): Feed {
  const texts = args.slice(1).map(sure)
  if (name === 'echo' || name === 'printf') return spoken(name, texts)
  if (name === 'pwd') return place.cwds?.length === 1 && place.cwds[0] && !place.scope.moves ? literal(place.cwds[0]) : anyFeed
  if (counts.has(name)) return known(texts.includes(undefined) || (name === 'wc' && operandsOf(texts).length > 0) ? 'name' : 'number')
  if (name === 'date') return known(texts.some((text) => text === undefined || text.includes('/')) ? 'unknown' : dateKind(texts))
  if (name === 'git') return gitOutput(texts)
  if (name === 'ls') return known(texts.some((text) => text === undefined || /^-\w*[afRl]|^--a|^-.*Q/.test(text)) ? 'unknown' : 'name')
  if (name === 'find') return known(texts.some((text) => text === undefined || /^-f?printf$|^-ls$/.test(text)) ? 'unknown' : 'name')
  if (lists.has(name)) return known('name')
  if (/^(rg|f?e?grep)$/.test(name) && texts.some((text) => /^-[a-zA-Z]*c[a-zA-Z]*$|^--count$/.test(text ?? '')) && operandsOf(texts).length <= 1) return known('number')
  if (/^(rg|f?e?grep)$/.test(name) && texts.some((text) => /^-[a-zA-Z]*l|^--files/.test(text ?? '')) && !texts.includes(undefined)) return known('name')
  if (filters.has(name)) return filtered(name, texts, place)
  return anyFeed
}

function literal(text: string): Feed {
  return { kind: 'literal', text, downloads: false }
}

function known(kind: 'number' | 'name' | 'unknown'): Feed {
  return { kind, text: '', downloads: false }
}

function operandsOf(texts: readonly (string | undefined)[]): readonly (string | undefined)[] {
  return texts.filter((text) => !text?.startsWith('-'))
}

function spoken(name: string, texts: readonly (string | undefined)[]): Feed {
  const all = texts.filter((text) => text !== undefined)
  if (all.length !== texts.length) return anyFeed
  if (name === 'echo') return all.some((text) => /\\|^-/.test(text)) ? anyFeed : literal(`${all.join(' ')}\n`)
  const [format = '', ...rest] = all
  const spelled = format.replaceAll('\\n', '\n')
  if (!/[%\\]|^-/.test(spelled)) return literal(spelled)
  const once = /^%s(\n?| ?)$/.exec(spelled)
  return once ? literal(rest.map((text) => `${text}${once[1]}`).join('')) : anyFeed
}

function dateKind(texts: readonly (string | undefined)[]): 'number' | 'name' {
  return texts.length === 1 && /^\+(%[sYmdHMSj])+$/.test(texts[0] ?? '') ? 'number' : 'name'
}

function gitOutput(texts: readonly (string | undefined)[]): Feed {
  const [sub, ...rest] = texts
  if (rest.includes(undefined)) return anyFeed
  if (sub === 'rev-list' && rest.includes('--count')) return known('number')
  if (sub === 'ls-files' || sub === 'ls-tree') return known('name')
  if (sub === 'rev-parse' && rest.some((text) => /^--(short|verify|abbrev-ref)|^HEAD/.test(text ?? '')) && !rest.some((text) => /^--(show|git|abs)/.test(text ?? ''))) return known('name')
  if (sub === 'branch' && rest.includes('--show-current')) return known('name')
  if (sub === 'diff' && rest.includes('--name-only')) return known('name')
  if (sub === 'describe') return known('name')
  return anyFeed
}

/** Lines of the input, no others. */
function filtered(name: string, texts: readonly (string | undefined)[], { feed }: Place): Feed {
  const operands = operandsOf(texts)
  const own = /grep$|^rg$/.test(name) ? operands.length - 1 : operands.filter((text) => !/^\d+$/.test(text ?? '')).length
  if (own > 0 || feed.kind === 'none' || (name === 'uniq' && texts.length > 0)) return anyFeed
  return feed.kind === 'literal' ? { ...feed, kind: 'unknown' } : feed
}

/** The words xargs would make of it. */
export function wordsOf(feed: Feed): readonly Arg[] | undefined {
  return feed.kind === 'literal' && !/['"\\\0]/.test(feed.text) ? feed.text.split(/\s+/).filter(Boolean).map((word) => literalArg(word)) : undefined
}
