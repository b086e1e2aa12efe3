export function sign(endpoint: string, fields: object): string;
