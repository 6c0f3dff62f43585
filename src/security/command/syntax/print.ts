/** Prints a script again from its syntax tree with every literal quoted, so that the executed script is the judged one. */

import type {
  Assignment,
  Case,
  CommandNode,
  CompoundList,
  Function as FunctionNode,
  ParsedScript,
  Pipeline,
  PipelineNode,
  Redirection,
  Statement,
  TestExpression,
  Word,
} from 'unbash'
import { arithmeticText } from './arithmetic.ts'
import { bodyOf, type Expansion, type Form, formsOf, type WordPiece } from './pieces.ts'
import { quoteCommand, quoteText } from './quote.ts'

export function printScript(script: ParsedScript, options: Omit<Printing, 'script'>): string {
  const to: Printing = { ...options, script: (inner) => joined(inner.commands, to, ' ').replace(/^\(/, ' (') }
  return joined(script.commands, to, '\n')
}

/** The last statement has no separator after it, only its own `&`. */
function joined(statements: readonly Statement[], to: Printing, separator: string): string {
  return statements
    .map((statement, index) => {
      const last = index === statements.length - 1
      const end = statement.background ? ' &' : last || separator === '\n' ? '' : ';'
      return printNode(statement.command, to) + end + (last ? '' : separator)
    })
    .join('')
}

/** Prints a list inside a compound command, terminated so that a keyword may follow. */
function list({ commands }: CompoundList, to: Printing): string {
  const text = joined(commands, to, ' ')
  return commands.at(-1)?.background ? text : `${text};`
}

type AnyNode = PipelineNode | Statement['command']

function printNode(node: AnyNode, to: Printing): string {
  switch (node.type) {
    case 'AndOr':
      return node.commands.map((command, index) => `${index > 0 ? ` ${node.operators[index - 1]} ` : ''}${printNode(command, to)}`).join('')
    case 'Pipeline':
      return pipeline(node, to)
    case 'Command':
      return command(node, to)
    case 'Redirected':
      return [printNode(node.command, to), ...node.redirects.map((one) => redirection(one, to))].join(' ')
    case 'Function':
      return definition(node, to)
    case 'Coproc':
      return `coproc ${node.name ? `${printWord(node.name, to)} ` : ''}${node.body.type === 'CompoundList' ? list(node.body, to) : printNode(node.body, to)}`
    default:
      return compound(node, to)
  }
}

function pipeline({ prefixes, commands, operators }: Pipeline, to: Printing): string {
  const before = prefixes.map((prefix) =>
    prefix.type === 'Negation' ? '! ' : `time ${prefix.posix ? '-p ' : ''}${prefix.endOfOptions ? '-- ' : ''}`,
  )
  return before.join('') + commands.map((one, index) => `${index > 0 ? ` ${operators[index - 1]} ` : ''}${printNode(one, to)}`).join('')
}

function command(node: Extract<CommandNode, { type: 'Command' }>, to: Printing): string {
  const part = (item: (typeof node.prefix)[number] | (typeof node.suffix)[number]) =>
    item.type === 'Word' ? printWord(item, to) : item.type === 'Assignment' ? printAssignment(item, to) : redirection(item, to)
  const name = node.name ? [printCommandWord(node.name, to)] : []
  return [...node.prefix.map(part), ...name, ...node.suffix.map(part)].filter((text) => text !== '').join(' ')
}

function redirection(node: Redirection, to: Printing): string {
  const from = node.descriptor
    ? node.descriptor.type === 'FileDescriptor'
      ? String(node.descriptor.value)
      : `{${node.descriptor.name}}`
    : ''
  if (node.type === 'HereDoc') return hereDocument(node, from, to)
  const target = node.target ? printWord(node.target, to) : ''
  return node.operator.endsWith('&') ? `${from}${node.operator}${target}` : `${from}${node.operator} ${target}`
}

/** Printed as a here-string, which adds the final newline of the body; the result does not depend on lines and delimiters. */
function hereDocument(node: Extract<Redirection, { type: 'HereDoc' }>, from: string, to: Printing): string {
  const edit = to.edits.get(node)
  if (edit !== undefined) return `${from}<<< ${edit}`
  const body = bodyOf(node)
  const last = body.at(-1)
  if (last?.type === 'literal' && last.text.endsWith('\n')) {
    return `${from}<<< ${printForm([...body.slice(0, -1), { type: 'literal', text: last.text.slice(0, -1) }], to)}`
  }
  return `${from}< /dev/null`
}

function definition({ name, body }: FunctionNode, to: Printing): string {
  const inner = body.type === 'Redirected' ? body.command : body
  const block =
    inner.type === 'BraceGroup' ? list(inner.body, to) : inner.type === 'CompoundList' ? list(inner, to) : `${printNode(inner, to)};`
  const redirects = body.type === 'Redirected' ? body.redirects.map((one) => ` ${redirection(one, to)}`).join('') : ''
  return `${/^[A-Za-z_]\w*$/.test(name.text) ? '' : 'function '}${name.text}() { ${block} }${redirects}`
}

function compound(node: Exclude<CommandNode, { type: 'Command' | 'Redirected' | 'Function' | 'Coproc' }>, to: Printing): string {
  switch (node.type) {
    case 'Subshell':
      return `( ${joined(node.body.commands, to, ' ')} )`
    case 'BraceGroup':
      return `{ ${list(node.body, to)} }`
    case 'If': {
      const branches = node.elif.map((branch) => ` elif ${list(branch.clause, to)} then ${list(branch.then, to)}`)
      return `if ${list(node.clause, to)} then ${list(node.then, to)}${branches.join('')}${node.else ? ` else ${list(node.else, to)}` : ''} fi`
    }
    case 'While':
      return `${node.kind} ${list(node.clause, to)} do ${list(node.body, to)} done`
    case 'For':
    case 'Select':
      return `${node.type === 'For' ? 'for' : 'select'} ${node.name.text}${words(node.wordlist, to)}; do ${list(node.body, to)} done`
    case 'ArithmeticFor': {
      const [first, test, update] = [node.initialize, node.test, node.update].map((one) => arithmeticText(one, to.script) ?? '')
      return `for (( ${first}; ${test}; ${update} )); do ${list(node.body, to)} done`
    }
    case 'ArithmeticCommand':
      return `(( ${arithmeticText(node.expression, to.script) ?? node.body} ))`
    case 'Case':
      return printCase(node, to)
    case 'TestCommand':
      return `[[ ${test(node.expression, to)} ]]`
  }
}

function words(list: readonly Word[] | undefined, to: Printing): string {
  return list ? ` in${list.map((word) => ` ${printWord(word, to)}`).join('')}` : ''
}

function printCase({ word, items }: Case, to: Printing): string {
  const printed = items.map(({ pattern, body, terminator }) => {
    const block = body.commands.length > 0 ? ` ${joined(body.commands, to, ' ')}` : ''
    return `(${pattern.map((one) => printWord(one, to)).join(' | ')})${block} ${terminator ?? ';;'} `
  })
  return `case ${printWord(word, to)} in ${printed.join('')}esac`
}

function test(node: TestExpression, to: Printing): string {
  switch (node.type) {
    case 'TestUnary':
      return `${node.operator} ${printWord(node.operand, to)}`
    case 'TestBinary':
      return `${printWord(node.left, to)} ${node.operator} ${node.operator === '=~' ? pattern(node.right, to) : printWord(node.right, to)}`
    case 'TestLogical':
      return node.operands.map((operand) => test(operand, to)).join(` ${node.operator} `)
    case 'TestNot':
      return `${'! '.repeat(node.negations.length)}${test(node.operand, to)}`
    case 'TestGroup':
      return `( ${test(node.expression, to)} )`
  }
}

/** Quotes would make a regular expression literal text, so plain expressions keep their spelling (all others are rated high). */
function pattern(word: Word, to: Printing): string {
  return isPlainPattern(word.text) ? word.text : word.parts ? printWord(word, to) : word.text
}

export function isPlainPattern(text: string): boolean {
  return /^[\w^$.*+?|()[\]{}:/@%,=-]+$/.test(text) && !/\$[\w({]/.test(text)
}

/** `edits` maps words to the safe, equivalent text that the judge chose (a shell's text printed again, `*` as `./*`). */
type Printing = {
  readonly home: string
  readonly edits: ReadonlyMap<object, string>
  /** Words that print a leading pattern as `./*`. */
  readonly dotted: ReadonlySet<object>
  script(script: ParsedScript): string
}

/** `${x%.ts}` and the like, only where the inner text has a single reading. */
const plainParameter =
  /^\$\{(#?([A-Za-z_]\w*(\[(\d+|[@*])\])?|\d+|[@*#?!$-])|([A-Za-z_]\w*|\d+)((:?[-+=?]|##?|%%?|\/[/#%]?|\^\^?|,,?)[\w./ ,:@%+=*?/-]*|:\d+(:\d+)?|: ?-\d+))\}$/

export function isPlainParameter(text: string): boolean {
  return plainParameter.test(text)
}

function printWord(word: Word, to: Printing): string {
  return printForms(word, to, quoteText)
}

function printCommandWord(word: Word, to: Printing): string {
  return printForms(word, to, quoteCommand)
}

function printForms(word: Word, to: Printing, quote: (text: string) => string): string {
  return (
    to.edits.get(word) ??
    formsOf(word, to.home)
      .map((form) => (to.dotted.has(word) && form[0]?.type === 'glob' ? './' : '') + printForm(form, to, quote))
      .join(' ')
  )
}

function printForm(form: Form, to: Printing, quote = quoteText): string {
  const texts = form.map((piece) => (piece.type === 'literal' && piece.print === undefined ? piece.text : undefined))
  if (!texts.includes(undefined)) return quote(texts.join(''))
  return form.map((piece) => printPiece(piece, to)).join('')
}

/** Prints expansions in braces, so that an adjacent letter does not join the name. */
function printPiece(piece: WordPiece, to: Printing): string {
  if (piece.type === 'literal') return piece.print ?? quoteText(piece.text)
  if (piece.type !== 'dynamic') return piece.text
  const text = printExpansion(piece.part, to)
  return piece.quoted ? `"${text}"` : text
}

function printExpansion(part: Expansion, to: Printing): string {
  switch (part.type) {
    case 'SimpleExpansion':
      return `\${${part.text.slice(1)}}`
    case 'ParameterExpansion':
      return part.text
    case 'CommandExpansion':
      return part.script && !part.text.startsWith('${') ? `$(${to.script(part.script)})` : part.text
    case 'ProcessSubstitution':
      return part.script ? `${part.operator}(${to.script(part.script)})` : part.text
    case 'ArithmeticExpansion': {
      const text = arithmeticText(part.expression, to.script)
      return text === undefined ? part.text : `$(( ${text} ))`
    }
  }
}

function printAssignment(assignment: Assignment, to: Printing): string {
  const { name, index, append, value } = assignment
  const target = `${name}${index ? `[${index.text}]` : ''}${append ? '+=' : '='}`
  if (value.type === 'Word') return target + (value.text === '' ? '' : printWord(value, to))
  return `${target}(${value.elements.map((element) => printElement(element, to)).join(' ')})`
}

/** `[key]=value` in an array is syntax, so it keeps its spelling (and is rated high). */
function printElement(element: Word, to: Printing): string {
  return element.text.startsWith('[') ? element.text : printWord(element, to)
}
