import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { canonical, changeTexts, isObject } from './json.ts'

/** The double with these bits. */
function double(hex: string): number {
  const view = new DataView(new ArrayBuffer(8))
  view.setBigUint64(0, BigInt(`0x${hex}`))
  return view.getFloat64(0)
}

describe('what has no canonical form', () => {
  test.each([
    ['NaN', double('7fffffffffffffff')],
    ['Infinity', double('7ff0000000000000')],
    ['-Infinity', double('fff0000000000000')],
    ['undefined', undefined],
    ['a function', () => 0],
    ['a symbol', Symbol('x')],
    ['a bigint', 1n],
    ['a lone high surrogate', '\ud83d'],
    ['a lone low surrogate in a key', { '\ude00': 1 }],
    ['a bad value deep inside', { a: [{ b: Number.NaN }] }],
  ])('%s is refused', (_, value) => {
    expect(() => canonical(value)).toThrow(TypeError)
  })
})

// RFC 8785, appendix B.
describe('numbers', () => {
  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('the double %s is %s', (hex, text) => {
    expect(canonical(double(hex))).toBe(text)
  })
})

describe('text', () => {
  // RFC 8785, section 3.2.2 and 3.2.3.
  test('is sorted, bare of white space and escaped as the standard shows', () => {
    const value = JSON.parse(String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`)
    const expected =
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    expect(canonical(value)).toBe(expected)
  })

  // RFC 8785, section 3.2.3: the emoji's first code unit is below U+FB33, its code point is not.
  test('has its keys in the order of UTF-16 code units', () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    }
    expect(Object.values(JSON.parse(canonical(value)))).toEqual([
      // JSON.parse puts integer keys first; the text below has the true order.
      'One',
      'Carriage Return',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ])
    expect(canonical(value)).toMatch(/^\{"\\r":.*"1":.*"\u0080":.*"\u00f6":.*"\u20ac":.*"\ud83d\ude00":.*"\ufb33":/u)
  })

  test('escapes control characters in the short form where there is one, and nothing that needs none', () => {
    expect(canonical('\b\t\n\f\r\u0000\u001f\u007f\u2028/é')).toBe('"\\b\\t\\n\\f\\r\\u0000\\u001f\u007f\u2028/é"')
  })

  test('keeps a member called __proto__ and sorts integer keys as text', () => {
    expect(canonical(JSON.parse('{"__proto__":1,"10":2,"9":3}'))).toBe('{"10":2,"9":3,"__proto__":1}')
  })

  test('leaves out members that are undefined, and has null for undefined items', () => {
    expect(canonical({ b: undefined, a: [undefined, 1] })).toBe('{"a":[null,1]}')
  })

  test('is JSON of the same value, the same for every order of keys, and its own canonical form', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const text = canonical(value)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(canonical(JSON.parse(text))).toBe(text)
        expect(canonical(reversed(value))).toBe(text)
      }),
    )
  })
})

test('an object is neither null nor a list', () => {
  expect([{}, { a: 1 }, Object.create(null)].map(isObject)).toEqual([true, true, true])
  expect([null, [], 'x', 1, undefined].map(isObject)).toEqual([false, false, false, false, false])
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  )
}

describe('changing every text', () => {
  const shout = (text: string) => text.replaceAll('a', 'A')
  test('reaches values and names at any depth', () => {
    expect(changeTexts({ a: ['a', { b: 'ba', n: 1 }], c: null }, shout)).toEqual({ A: ['A', { b: 'bA', n: 1 }], c: null } as never)
    expect(changeTexts('a', shout)).toBe('A')
  })

  test('gives back the very value, and its very parts, where nothing changes', () => {
    const same = { b: ['x', { c: 1 }] }
    expect(changeTexts(same, shout)).toBe(same)
    const half = { keep: same, other: 'a' }
    const changed = changeTexts(half, shout)
    expect(changed).not.toBe(half)
    expect(changed.keep).toBe(same)
    expect(half.other).toBe('a')
  })

  test('a member called __proto__ stays a member', () => {
    const odd: object = JSON.parse('{"__proto__":{"x":"a"},"y":"a"}')
    expect(JSON.stringify(changeTexts(odd, shout))).toBe('{"__proto__":{"x":"A"},"y":"A"}')
  })
})
