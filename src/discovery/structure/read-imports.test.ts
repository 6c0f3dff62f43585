import { describe, expect, test } from 'bun:test'
import { processorMs } from '../../../test/support/processor-ms.ts'
import { createImportReader } from './read-imports.ts'

const read = createImportReader()
const list = (text: string, path = 'a.ts') =>
  read(path, text).imports.map(({ specifier, line, typeOnly }) => `${line}${typeOnly ? 't' : ''} ${specifier}`)

describe('imports', () => {
  test('of every form are found with their lines, and those for types are marked', () => {
    const text = [
      `#!/usr/bin/env bun`,
      `import type { A } from './a'`,
      `import { b } from "./b"; import './c'`,
      `export * from './d'; export type { E } from './e'`,
      `const f = () => import(/* why */ './f'), g = require('./g')`,
      `import h = require('./h')`,
      `import { type I } from './i'; import { type J, j } from './j'`,
      `import type from './k'`,
      `import {`,
      `  l,`,
      `} from './l'`,
    ].join('\n')
    expect(list(text).sort()).toEqual(
      ['2t ./a', '3 ./b', '3 ./c', '4 ./d', '4t ./e', '5 ./f', '5 ./g', '6 ./h', '7t ./i', '7 ./j', '8 ./k', '11 ./l'].sort(),
    )
  })

  test.each([
    `// import './no'`,
    `/* import './no'\nimport('./no') */`,
    `const a = "import './no'"`,
    'const a = `import x from "./no"; ${1}`',
    `const a = /from '.\\/no'/`,
    `declare const a: string; a.from('./no')`,
  ])('that only look like some are not: %s', (text) => {
    expect(list(text)).toEqual([])
  })

  test('a comment with the same words does not move the line', () => {
    expect(list(`// import './a'\n/**\n * from './a'\n */\nimport './a'`)).toEqual(['5 ./a'])
  })

  test.each(["import('./a' + b)", 'import(`./${b}`)', 'require(b)', "import('./a', b), import(c)"])(
    'with a name that is known only at run time have an empty one: %s',
    (text) => {
      expect(list(text)).toContain('1 ')
    },
  )

  test.each([`const a = "import(b)"`, `const a = 'require(b)'`, `// import(b)`, `const a = /import(b)/`])(
    'which is not the case in a text: %s',
    (text) => {
      expect(list(text)).toEqual([])
    },
  )

  test('what JSX is compiled to is not among them, and React by its name is', () => {
    expect(list('export const a = <b>from "./no"</b>', 'a.tsx')).toEqual([])
    expect(list(`import React from 'react'; export const a = <b />`, 'a.jsx')).toEqual(['1 react'])
  })

  test('an escaped name is read as the parser reads it', () => {
    expect(list(String.raw`import './\u0061'`)).toEqual(['1 ./a'])
  })
})

test('a file that cannot be parsed says why', () => {
  expect(read('a.ts', 'import { a from "./b"')).toEqual({ imports: [], problem: expect.stringMatching(/^cannot be parsed: Expected/) })
  expect(read('a.ts', '\0\u0001\u0002').problem).toStartWith('cannot be parsed')
})

test('other languages have none that are known', () => {
  expect(read('a.rb', 'import b').imports).toEqual([])
  expect(read('ts', `import './b'`).imports).toEqual([])
})

test('a megabyte of half imports takes no second', () => {
  const begun = processorMs()
  for (const half of ['import ', 'from "', "require('", 'import type {', 'export {type ', 'import(/*'])
    read('a.ts', half.repeat(1_000_000 / half.length))
  expect(processorMs() - begun).toBeLessThan(6_000)
})
