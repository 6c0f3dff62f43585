/** Declares the text of a shell script, which `with { type: 'text' }` imports. */

declare module '*.sh' {
  const text: string
  export default text
}
