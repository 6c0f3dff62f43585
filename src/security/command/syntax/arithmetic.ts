/** Prints arithmetic again and lists the variables it reads, because bash evaluates their text as expressions, subscripts included. */

import type { ArithmeticExpression, CommandExpansionPart, ParsedScript } from 'unbash'

/** Prints a script inside the expression. Undefined when the expression contains a part that is not plain. */
export type Printer = (script: ParsedScript) => string

const plain =
  /^(\d[\w#@]*|[A-Za-z_]\w*(\[(\d+|[A-Za-z_]\w*)\])?|\$(\w|[A-Za-z_]\w*|[#?])|\$\{#?([A-Za-z_]\w*|\d+)\}|\$\{#[A-Za-z_]\w*\[[@*]\]\})$/

export function arithmeticText(expression: ArithmeticExpression | undefined, print: Printer): string | undefined {
  if (!expression) return
  switch (expression.type) {
    case 'ArithmeticWord':
      return plain.test(expression.value) ? expression.value : undefined
    case 'ArithmeticCommandExpansion':
      return expression.script && !expression.text.startsWith('${') ? `$(${print(expression.script)})` : undefined
    case 'ArithmeticGroup':
      return join(['(', arithmeticText(expression.expression, print), ')'])
    case 'ArithmeticUnary': {
      const operand = wrapped(expression.operand, print)
      return expression.prefix ? join([`${expression.operator} `, operand]) : join([operand, expression.operator])
    }
    case 'ArithmeticBinary':
      return join([wrapped(expression.left, print), ` ${expression.operator} `, wrapped(expression.right, print)])
    case 'ArithmeticTernary':
      return join([
        wrapped(expression.test, print),
        ' ? ',
        wrapped(expression.consequent, print),
        ' : ',
        wrapped(expression.alternate, print),
      ])
  }
}

function wrapped(expression: ArithmeticExpression, print: Printer): string | undefined {
  const text = arithmeticText(expression, print)
  return /^Arithmetic(Binary|Ternary)$/.test(expression.type) ? join(['(', text, ')']) : text
}

function join(parts: readonly (string | undefined)[]): string | undefined {
  return parts.includes(undefined) ? undefined : parts.join('')
}

/** @returns the names whose values bash evaluates, and the scripts whose output it evaluates */
export function arithmeticInputs(expression: ArithmeticExpression): {
  readonly names: readonly string[]
  readonly commands: readonly CommandExpansionPart[]
  readonly scripts: readonly ParsedScript[]
} {
  const all = leaves(expression)
  const words = all.flatMap((leaf) => (leaf.type === 'ArithmeticWord' ? [leaf] : []))
  return {
    names: words.flatMap(
      (word) =>
        word.value.replace(/\$?\{?#[A-Za-z_]\w*/g, ' ').match(/(?<![\w#$])[A-Za-z_]\w*|(?<=\$\{?)[A-Za-z_]\w*|(?<=\$\{?)\d+/g) ?? [],
    ),
    commands: words.flatMap((word) => word.parts ?? []).filter((part) => part.type === 'CommandExpansion'),
    scripts: all.flatMap((leaf) => (leaf.type === 'ArithmeticCommandExpansion' && leaf.script ? [leaf.script] : [])),
  }
}

type Leaf = Extract<ArithmeticExpression, { type: 'ArithmeticWord' | 'ArithmeticCommandExpansion' }>

function leaves(expression: ArithmeticExpression): readonly Leaf[] {
  switch (expression.type) {
    case 'ArithmeticWord':
    case 'ArithmeticCommandExpansion':
      return [expression]
    case 'ArithmeticGroup':
      return leaves(expression.expression)
    case 'ArithmeticUnary':
      return leaves(expression.operand)
    case 'ArithmeticBinary':
      return [...leaves(expression.left), ...leaves(expression.right)]
    case 'ArithmeticTernary':
      return [...leaves(expression.test), ...leaves(expression.consequent), ...leaves(expression.alternate)]
  }
}
