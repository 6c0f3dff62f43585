import { describe, expect, test } from 'bun:test'
import { fits } from './fits.ts'

const object = (property: object, more: object = {}) => ({ type: 'object', properties: { a: property }, ...more })

describe('no quick yes', () => {
  test.each<[string, object, unknown]>([
    ['no object', { type: 'object' }, []],
    ['no object at all', { type: 'object' }, null],
    ['an unknown keyword', object({ type: 'string', pattern: 'x' }), { a: 'x' }],
    ['a keyword of another type', object({ type: 'boolean', minimum: 1 }), { a: true }],
    ['another keyword of another type', object({ type: 'string', minimum: 1 }), { a: 'x' }],
    ['no type', object({ enum: ['x'] }), { a: 'x' }],
    ['a type that only Object has', object({ type: 'constructor' }), { a: 'x' }],
    ['several types', object({ type: ['string', 'null'] }), { a: 'x' }],
    ['another type', object({ type: 'string' }), { a: 1 }],
    ['a text that is too short', object({ type: 'string', minLength: 2 }), { a: 'x' }],
    ['a text that is too long', object({ type: 'string', maxLength: 2 }), { a: 'xyz' }],
    ['a text that is not listed', object({ type: 'string', enum: ['x'] }), { a: 'y' }],
    ['a list that is none', object({ type: 'string', enum: 'xy' }), { a: 'x' }],
    ['a list of other things', object({ type: 'string', enum: ['x', 1] }), { a: 'x' }],
    ['half a number', object({ type: 'integer' }), { a: 1.5 }],
    ['a number that is too small', object({ type: 'integer', minimum: 2 }), { a: 1 }],
    ['a number that is too large', object({ type: 'number', maximum: 2 }), { a: 2.5 }],
    ['a number that is none', object({ type: 'number' }), { a: Number.NaN }],
    ['a bound that is none', object({ type: 'number', minimum: '1' }), { a: 2 }],
    ['another bound that is none', object({ type: 'number', maximum: '9' }), { a: 2 }],
    ['a truth that is none', object({ type: 'boolean' }), { a: 0 }],
    ['too few items', object({ type: 'array', items: { type: 'string' }, minItems: 1 }), { a: [] }],
    ['too many items', object({ type: 'array', items: { type: 'string' }, maxItems: 1 }), { a: ['x', 'y'] }],
    ['a wrong item', object({ type: 'array', items: { type: 'string' } }), { a: ['x', 1] }],
    ['items without a schema', object({ type: 'array' }), { a: ['x'] }],
    ['a missing key', object({ type: 'string' }, { required: ['a'] }), {}],
    ['a required key that is no text', object({ type: 'string' }, { required: [1] }), { a: 'x', 1: 'y' }],
    ['a required key that only Object has', { type: 'object', required: ['toString'] }, {}],
    ['an unknown key where the schema forbids it', object({ type: 'string' }, { additionalProperties: false }), { b: 'x' }],
    ['an unknown key that only Object has', object({ type: 'string' }, { additionalProperties: false }), JSON.parse('{"toString":"x"}')],
    ['a schema for further keys', object({ type: 'string' }, { additionalProperties: { type: 'string' } }), { b: 'x' }],
    ['properties that are none', { type: 'object', properties: [] }, {}],
    ['inner keys that are unknown', object({ type: 'object', additionalProperties: false }), { a: { b: 1 } }],
  ])('%s', (_, schema, value) => expect(fits({ ...schema }, value)).toBe(false))
})

describe('a quick yes', () => {
  const words = { description: 'd', title: 't', default: 'x', examples: ['x'], $schema: 's' }
  test.each<[string, object, unknown]>([
    ['nothing asked', { type: 'object' }, { anything: 1 }],
    ['nothing required', object({ type: 'string' }), {}],
    ['words about it', object({ type: 'string', ...words }), { a: 'x' }],
    ['a text of just the length', object({ type: 'string', minLength: 2, maxLength: 2 }), { a: 'xy' }],
    ['a listed text', object({ type: 'string', enum: ['x', 'y'] }), { a: 'y' }],
    ['an integer at its bounds', object({ type: 'integer', minimum: 2, maximum: 2, ...words }), { a: 2 }],
    ['a number at its bounds', object({ type: 'number', minimum: 0.5, maximum: 0.5, ...words }), { a: 0.5 }],
    ['a truth', object({ type: 'boolean', ...words }), { a: false }],
    ['items', object({ type: 'array', items: { type: 'integer' }, minItems: 1, maxItems: 2, ...words }), { a: [1, 2] }],
    ['an object in it, with keys nobody named', object({ type: 'object', ...words }), { a: { b: 1 } }],
    ['a required key', object({ type: 'string' }, { required: ['a'] }), { a: '' }],
    ['further keys', object({ type: 'string' }), { b: 1 }],
    ['further keys where they are let in', object({ type: 'string' }, { additionalProperties: true }), { b: 1 }],
  ])('%s', (_, schema, value) => expect(fits({ ...schema }, value)).toBe(true))
})
