import { expect, test } from 'bun:test'
import { type Files, projectOf } from './project.fixture.ts'

const targets = (files: Files, path = 'src/ui/a.ts') =>
  projectOf(files)
    .facts(path)
    ?.channels.map(({ target }) => target)
const from = (specifier: string, files: Files = {}) =>
  targets({ 'src/db/x.ts': '', 'src/db/index.ts': '', ...files, 'src/ui/a.ts': `import '${specifier}'` })

test.each([
  ['../db/x.ts', 'src/db/x.ts'],
  ['../db/x', 'src/db/x.ts'],
  ['../db/x.js', 'src/db/x.ts'],
  ['../db', 'src/db/index.ts'],
  ['../db/', 'src/db/index.ts'],
  ['../../src/ui/../db/./x?raw', 'src/db/x.ts'],
  ['../%64b/x', 'src/db/x.ts'],
  ['..\\\\db\\\\x', 'src/db/x.ts'],
  ['/project/src/db/x.ts', 'src/db/x.ts'],
  ['file:///project/src/db/x.ts', 'src/db/x.ts'],
])('%s leads to %s', (specifier, target) => {
  expect(from(specifier)).toEqual([target])
})

test('what is not there leads to the path that it names, so that a rule sees it before it is made', () => {
  expect(from('../db/later')).toEqual(['src/db/later'])
  expect(from('../DB/x')).toEqual(['src/DB/x'])
})

test('packages and what lies outside have names of their own', () => {
  expect(['pg', 'pg/lib/x', '@acme/db/x', 'fs', 'node:fs/promises', 'bun:sqlite'].map((name) => from(name)?.[0])).toEqual([
    'package:pg',
    'package:pg',
    'package:@acme/db',
    'package:node:fs',
    'package:node:fs/promises',
    'package:bun:sqlite',
  ])
  expect(from('../../../other/x')).toEqual(['outside:../other/x'])
  expect(from('/etc/x')?.[0]).toStartWith('outside:')
})

test('links are followed within the project, in a circle too, and outside they are named', () => {
  expect(from('./d/x', { 'src/ui/d': '→ ../db' })).toEqual(['src/db/x.ts'])
  expect(from('./d/x', { 'src/ui/d': '→ /project/src/db' })).toEqual(['src/db/x.ts'])
  expect(from('./d/x', { 'src/ui/d': '→ /etc' })?.[0]).toStartWith('outside:')
  expect(from('./d/x', { 'src/ui/d': '→ ./d' })?.[0]).toStartWith('outside:')
})

test('the aliases of the nearest tsconfig.json count, with comments, of a file that it extends too', () => {
  const paths = '{ // why\n "compilerOptions": { "paths": { "@/*": ["./src/*"], "data": ["./src/db/x.ts"] }, }, }'
  expect(from('@/db/x', { 'tsconfig.json': paths })).toEqual(['src/db/x.ts'])
  expect(from('@/db/later', { 'tsconfig.json': paths })).toEqual(['src/db/later'])
  expect(from('data', { 'tsconfig.json': paths })).toEqual(['src/db/x.ts'])
  expect(from('@/db/x', { 'tsconfig.json': '{"extends":"./base"}', 'base.json': paths })).toEqual(['src/db/x.ts'])
  expect(from('src/db/x', { 'jsconfig.json': '{"compilerOptions":{"baseUrl":"."}}' })).toEqual(['src/db/x.ts'])
  expect(from('@/db/x', { 'tsconfig.json': paths, 'src/ui/tsconfig.json': '{}' })).toEqual(['package:@/db'])
  expect(from('@/db/x', { 'tsconfig.json': '{ broken' })).toEqual(['package:@/db'])
  expect(from('@/db/x', { 'tsconfig.json': '{"extends":"./tsconfig"}' })).toEqual(['package:@/db'])
})

test('lines are counted as an editor counts them', () => {
  const lines = (text: string) => projectOf({ 'a.txt': text }).facts('a.txt')?.lines
  expect([lines(''), lines('a'), lines('a\n'), lines('a\nb'), lines('\n\n')]).toEqual([0, 1, 1, 2, 2])
})

test('a file of more than a megabyte says so', () => {
  expect(projectOf({ 'a.ts': 'x'.repeat(1_000_001) }).facts('a.ts')?.problem).toBe('is not a text of at most a megabyte')
})
