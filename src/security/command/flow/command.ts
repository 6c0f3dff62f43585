/** Walks one simple command: judges its words, redirections and assignments, and passes them on as arguments. */

import type { Assignment, Command } from 'unbash'
import { declarers, holdsCommand } from '../names.ts'
import { type Arg, anyFeed, type Flow, type Look, literalArg, noFeed, type Place, sure, widest } from './model.ts'
import { walkRedirections } from './redirections.ts'
import { searchSettings } from './search.ts'
import { argsOf } from './value.ts'
import { walkWord } from './word.ts'

export function walkCommand(look: Look, node: Command, place: Place): Flow {
  for (const item of node.prefix) if (item.type === 'Assignment') walkAssignment(look, item, place)
  if (node.name) walkWord(look, node.name, place)
  for (const item of node.suffix) {
    if (item.type === 'Word') walkWord(look, item, place)
    if (item.type === 'Assignment') walkAssignment(look, item, place)
  }
  const feed = walkRedirections(look, node.redirects, place)
  if (!node.name) return { ...still(place), assigned: withNames(place, node.prefix) }
  const args = [node.name, ...node.args].flatMap((item) =>
    item.type === 'Word' ? argsOf(item, { look, place }) : [assigned(look, item, place)],
  )
  const outcome = look.invoke(args, { ...place, feed })
  const declares = declarers.has(sure(args[0]) ?? '')
  return {
    ok: outcome.cwds ? outcome.cwds.to : place.cwds,
    fail: place.cwds,
    assigned: declares ? withNames(place, node.suffix) : place.assigned,
    output: outcome.output ?? anyFeed,
  }
}

function still(place: Place): Flow {
  return { ok: place.cwds, fail: place.cwds, assigned: place.assigned, output: { ...noFeed, kind: 'unknown' } }
}

function withNames(place: Place, items: Command['prefix'] | Command['suffix']): ReadonlySet<string> {
  const names = items.flatMap((item) => (item.type === 'Assignment' && item.value.type === 'Word' && !item.index ? [item.name] : []))
  return new Set([...place.assigned, ...names])
}

/** `export NAME=value` as one argument. */
function assigned(look: Look, { name, value }: Pick<Assignment, 'name' | 'value'>, place: Place): Arg {
  const [arg] = value.type === 'Word' ? argsOf(value, { look, place }) : []
  if (!arg) return literalArg(`${name}=`)
  return {
    ...arg,
    texts: arg.texts.map((text) => `${name}=${text}`),
    kind: widest('literal', arg.kind),
    vanishes: false,
    several: false,
    fixed: false,
  }
}

function walkAssignment(look: Look, { index, value, name }: Assignment, place: Place): void {
  if (!/^[A-Za-z_]\w*$/.test(name) || (index && !/^\d+$/.test(index.text))) {
    look.raise('command.unclear', `the subscript of ${JSON.stringify(name.slice(0, 40))} is evaluated; use a plain number`)
  }
  if (index) walkWord(look, index, place)
  for (const word of value.type === 'Word' ? [value] : value.elements) {
    walkWord(look, word, place)
    if (value.type === 'ArrayValue' && word.text.startsWith('['))
      look.raise('command.unclear', 'array elements with subscripts are not followed')
  }
  if (value.type === 'Word' && holdsCommand(name)) searchSettings(look, assigned(look, { name, value }, place).texts, place)
}
