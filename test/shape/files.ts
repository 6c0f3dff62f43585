/** Checks the outside of each file: its name, its length, its first sentence, its exports and the targets of its imports. */

import { type Law, type Module, type Node, nameOf, nodes, type Violation, violation } from './module.ts'

const MAX_LINES = 500
export const TOO_LONG = '\n'.repeat(MAX_LINES)

export const noBarrels: Law = (modules) =>
  modules
    .filter((module) => /(^|\/)index\.[a-z]+$/.test(module.path))
    .map((module) => ({ file: module.path, line: 1, message: 'no index files: name it after what it holds' }))

export const filesAreShort: Law = (modules) =>
  modules
    .filter((module) => lineCount(module.text) > MAX_LINES && !isGenerated(module))
    .map((module) => ({
      file: module.path,
      line: MAX_LINES,
      message: `${lineCount(module.text)} lines; past ${MAX_LINES} there is a second idea in it`,
    }))

export const filesSayWhatTheyAreFor: Law = (modules) =>
  modules
    .filter((module) => !module.path.endsWith('.test.ts') && !/^(#![^\n]*\n+)?\/\*\*\s(\s*\* )?[^\s*/]/.test(module.text))
    .map((module) => ({ file: module.path, line: 1, message: 'opens with one doc-comment sentence that says what it is for' }))

export const exportsAreNamed: Law = (modules) =>
  modules.flatMap((module) =>
    nodes(module.program.body)
      .filter((one) => one.type === 'ExportDefaultDeclaration' || one.type === 'TSExportAssignment')
      .map((one) => violation(module, one, 'only named exports')),
  )

/** A relative import names an existing file with its extension; the compiler checks data files. */
export const importsLeadSomewhere: Law = (modules) => {
  const known = new Set(modules.map((module) => module.path))
  return modules.flatMap((module) =>
    module.imports
      .filter((one) => one.target !== undefined && !known.has(one.target) && !DATA.test(one.target))
      .map(
        (one): Violation => ({
          file: module.path,
          line: one.line,
          message: `"${one.specifier}" is no file; imports carry their extension`,
        }),
      ),
  )
}

const DATA = /\.(json|html|css|txt|md|sql|sh)$/

export const filesParse: Law = (modules) =>
  modules.flatMap((module) =>
    module.errors.map((message): Violation => ({ file: module.path, line: 1, message: `does not parse: ${message}` })),
  )

export type Page = { readonly path: string; readonly text: string }

export function pagesAreShort(pages: readonly Page[]): Violation[] {
  return pages
    .filter((page) => !page.text.startsWith('<!-- generated') && lineCount(page.text) > limitOf(page.path))
    .map((page) => ({ file: page.path, line: limitOf(page.path), message: `${lineCount(page.text)} lines; at most ${limitOf(page.path)}` }))
}

function limitOf(path: string): number {
  return path === 'AGENTS.md' ? 100 : path === 'README.md' ? 130 : 150
}

export function lineCount(text: string): number {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
}

/** Tells a table that a script writes: its first doc comment names the script, and no function is anywhere in it. */
export function isGenerated(module: Module): boolean {
  return /^\/\*\*(?:(?!\*\/)[\s\S])*`scripts\/[^`\s]+` writes this file\b/.test(module.text) && isTable(module)
}

/** Imports, types and constants of literal data. */
function isTable(module: Module): boolean {
  return nodes(module.program.body).every((one) => {
    const declared = one.type === 'ExportNamedDeclaration' ? nodes(one.declaration)[0] : one
    if (declared === undefined || declared.type === 'ImportDeclaration' || declared.type.startsWith('TS')) return true
    return declared.type === 'VariableDeclaration' && nodes(declared.declarations).every((variable) => nodes(variable.init).every(isData))
  })
}

function isData(node: Node): boolean {
  switch (node.type) {
    case 'Literal':
    case 'Identifier':
      return true
    case 'TemplateLiteral':
      return nodes(node.expressions).every(isData)
    case 'UnaryExpression':
    case 'SpreadElement':
      return nodes(node.argument).every(isData)
    case 'ArrayExpression':
      return nodes(node.elements).every(isData)
    case 'ObjectExpression':
      return nodes(node.properties).every((one) => (one.type === 'Property' ? nodes(one.value).every(isData) : isData(one)))
    case 'NewExpression':
      return /^(Set|Map)$/.test(nameOf(node.callee)) && nodes(node.arguments).every(isData)
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
      return nodes(node.expression).every(isData)
    default:
      return false
  }
}
