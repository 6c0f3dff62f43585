/** The lines by which `init` made the offline helper the default: nobody chose it, so a later `init` may replace it. */

/** With the comments that init writes; a person who chooses writes other lines, or leaves the comments out. */
const written =
  /^(# Which of \[providers\.models\.NAME\] answers\..*\r?\ndefault_provider = )"local"([ \t]*\r?\n# The model asked of the default provider\..*\r?\ndefault_model = )"mock"(?=[ \t]*\r?$)/m

export function isOfflineDefault(text: string): boolean {
  return written.test(text)
}

/** The same text with these two values, already quoted, in place of "local" and "mock". */
export function replaceOfflineDefault(text: string, { provider, model }: { readonly provider: string; readonly model: string }): string {
  return text.replace(written, (_, first: string, second: string) => `${first}${provider}${second}${model}`)
}

/** From now on a person's own choice: no later `init` replaces it. */
export function chooseOffline(text: string, end: string): string {
  return text.replace(written, (whole) =>
    whole.replace('default_provider = ', `# Chosen by hand; init leaves it.${end}default_provider = `),
  )
}
